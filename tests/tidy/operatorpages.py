"""The pages about the operator: its settings, metrics and events."""

from typing import Final

from karpy.adapters.telemetry.eventspecs import CONDITION_EVENT, EVENTS
from karpy.adapters.telemetry.specs import MetricSpec, metric_specs
from karpy.codec.catalogs import kwok_catalog
from karpy.model.settings import Gates
from karpy.wiring.clouds import aws
from karpy.wiring.flags import FLAGS, GATE_FIELDS, GATE_NOTES, Flag, Gate
from tests.tidy.tables import NOTE, table

_DEFAULT_MAX: Final = 40
_NODE_CLASS: Final = "karpenter.kwok.sh/kwoknodeclass"
_METRICS: Final = (
    ("Of Karpenter", ("karpenter_",)),
    ("Of conditions", ("operator_",)),
    ("Of controllers and their queues", ("controller_runtime_", "workqueue_")),
    ("Of requests and leadership", ("client_go_", "rest_client_", "leader_election_")),
    ("Of Karpy alone", ("karpy_",)),
)
_SETTINGS_NOTE: Final = """\
`karpy run` takes Karpenter's flags and environment variables, with its defaults. A flag overrides
its variable, a variable overrides the default.

`karpy run` does not start with an unknown flag or with a wrong value of a flag (KP1010). A
*variable* whose number, duration or truth value cannot be read is ignored, as in Karpenter, and the
log says so. Unknown feature gates are ignored, too. The last column says which flags have no
effect. Durations are written as `10s` or `1m30s`. Karpenter has no `KARPY_…` variables.
"""
_GATES_NOTE: Final = """\
`--feature-gates=NodeRepair=true,NodeOverlay=true`; other gates keep their defaults.
"""
_METRICS_NOTE: Final = """\
Karpy serves its metrics for Prometheus at `:8080/metrics`. Names, types, labels and buckets are
Karpenter's, so that dashboards and alerts keep working. Metrics of the process (`process_…`) are
served, too. The labels of nodes and NodeClaims depend on the cloud; this page lists those of KWOK.

Series of single pods, nodes and conditions are computed at each scrape;
`--disable-cluster-state-observability` leaves them out.
"""
_EVENTS_NOTE: Final = """\
`kubectl describe` and `kubectl get events` show these events. The reasons are Karpenter's and
never change. The same event about the same object is not emitted again within two minutes; for
some reasons the time is longer.
"""


def settings_page() -> str:
    """List every flag of the operator, its environment variable and its default."""
    return "\n".join(
        [
            NOTE,
            "# Settings\n",
            _SETTINGS_NOTE,
            "## Flags\n",
            table(("flag", "variable", "default", "meaning"), [_flag_row(each) for each in FLAGS]),
            "## Flags of AWS\n",
            "With `--provider aws`; [AWS](clouds/aws.md) says more about them.\n",
            table(
                ("flag", "variable", "default", "meaning"),
                [_flag_row(each) for each in aws.FLAGS],
            ),
            "## Feature gates\n",
            _GATES_NOTE,
            table(
                ("gate", "stage", "default", "meaning"), [_gate_row(each) for each in GATE_NOTES]
            ),
        ]
    )


def metrics_page() -> str:
    """List every metric."""
    specs = metric_specs(kwok_catalog().well_known, [_NODE_CLASS])
    head = ("metric", "type", "labels", "meaning")
    parts = [NOTE, "# Metrics\n", _METRICS_NOTE]
    for title, prefixes in _METRICS:
        rows = [_metric_row(each) for each in specs if each.name.startswith(prefixes)]
        parts += [f"## {title}\n", table(head, rows)]
    parts += ["## Of AWS\n", table(head, [_metric_row(each) for each in aws.METRICS])]
    return "\n".join(parts)


def events_page() -> str:
    """List every event."""
    rows = [
        (
            f"`{each.reason}`",
            ", ".join(each.objects),
            "Warning" if each.is_warning else "Normal",
            each.meaning,
        )
        for each in (*EVENTS, *aws.EVENTS, CONDITION_EVENT)
    ]
    head = ("reason", "about", "type", "meaning")
    return "\n".join([NOTE, "# Events\n", _EVENTS_NOTE, table(head, rows)])


def _flag_row(flag: Flag) -> tuple[str, ...]:
    shown = f"`{flag.default}`" if flag.default else ""
    env = f"`{flag.env}`" if flag.env else ""
    return f"`--{flag.name}`", env, shown if len(shown) <= _DEFAULT_MAX else "below", flag.help


def _gate_row(gate: Gate) -> tuple[str, ...]:
    is_on = getattr(Gates(), GATE_FIELDS[gate.name])
    return f"`{gate.name}`", gate.stage, str(is_on).lower(), gate.help


def _metric_row(spec: MetricSpec) -> tuple[str, ...]:
    labels = ", ".join(spec.labels)
    return f"`{spec.name}`", spec.type.value, f"`{labels}`" if labels else "", spec.help
