"""Every flag of `karpy run`, as data that the parser, the help and docs/settings.md share."""

import math
from collections.abc import Callable, Iterable
from datetime import timedelta
from difflib import get_close_matches
from enum import Enum
from ipaddress import ip_address
from typing import Any, Final

from msgspec import Struct

from karpy.codec.fields import FieldInvalid
from karpy.codec.spreaddefaults import read_spread_defaults
from karpy.model.constraints import SpreadConstraint
from karpy.model.requirements import as_integer
from karpy.model.settings import (
    Gates,
    LogFormat,
    LogLevel,
    MinValuesPolicy,
    Options,
    Packing,
    PodNomination,
    PreferencePolicy,
)
from karpy.model.times import parse_duration, write_duration

_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
PORT_MAX: Final = 65_535
_OURS: Final = "KARPY_"


class Unfit(ValueError):
    """A text is not a valid value of its form; says the problem and what to write instead."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


class TextForm(Struct, frozen=True):
    """The text form of a kind of values."""

    metavar: str
    """Placeholder of the value in help; empty for a switch, which needs no value."""
    read: Callable[[str], object]
    """Read a value; raise Unfit."""
    write: Callable[[Any], str] = str
    is_forgiven: bool = False
    """Whether an invalid environment variable is ignored with a log line, not refused."""
    check: Callable[[Any], None] = lambda _: None
    """Raise Unfit if a readable value is out of bounds."""


def _read_share(text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise Unfit(f"is `{text}`, which is no number", "write a share such as 0.075") from error
    if not 0 <= value < math.inf:
        raise Unfit(f"is {text}", "write a share of 0 or more, such as 0.075")
    return value


SHARE: Final[TextForm] = TextForm("SHARE", _read_share, is_forgiven=True)
"""A share of a whole."""


def number(*, least: int | None = None, most: int | None = None, metavar: str = "N") -> TextForm:
    """Make the form of whole numbers within bounds."""

    def check(value: int) -> None:
        if (least is not None and value < least) or (most is not None and value > most):
            upto = "or more" if most is None else f"to {most}"
            raise Unfit(f"is {value}", f"write a whole number from {least} {upto}")

    return TextForm(metavar, _read_number, is_forgiven=True, check=check)


def choice(kind: type[Enum], *, empty: Enum | None = None) -> TextForm:
    """Make the form of the values of an enum; an empty text stands for `empty`, if given."""
    words = [str(each.value) for each in kind]

    def read(text: str) -> Enum:
        if not text and empty is not None:
            return empty
        if text not in words:
            close = get_close_matches(text.lower(), [word.lower() for word in words], 1)
            like = next((word for word in words if [word.lower()] == close), "")
            means = f"write {like}" if like else f"use one of: {', '.join(words)}"
            raise Unfit(f"is `{text}`, which is none of {', '.join(words)}", means)
        return kind(text)

    return TextForm("|".join(words), read, lambda value: str(value.value))


def _read_number(text: str) -> int:
    value = as_integer(text)
    if value is None:
        raise Unfit(f"is `{text}`, which is no whole number", "write digits only, as in 8080")
    return value


def read_truth(text: str) -> bool:
    """Read true or false in any spelling of Go's strconv.ParseBool."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise Unfit(f"is `{text}`, which is neither true nor false", "write true or false")


def read_literal(text: str) -> bool:
    """Read `true` or `false` and nothing else."""
    if text not in {"true", "false"}:
        raise Unfit(f"is `{text}`, which is neither true nor false", "write true or false")
    return text == "true"


def _read_duration(text: str) -> timedelta:
    value = parse_duration(text)
    if value is None:
        hint = f"add the unit: {text}s" if as_integer(text) is not None else "write it as 10s or 1m"
        raise Unfit(f"is `{text}`, which is no duration", hint)
    return value


def _read_address(text: str) -> str:
    try:
        return str(ip_address(text)) if text else ""
    except ValueError:
        hint = "write an address of this machine, as in 127.0.0.1 or ::1; none is all of them"
        raise Unfit(f"is `{text}`, which is no IP address", hint) from None


def _check_duration(value: timedelta) -> None:
    if value < timedelta():
        raise Unfit(f"is {write_duration(value)}", "write a duration of 0s or more")


def _read_list(text: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if not parts:
        raise Unfit("names no place", "write stdout, stderr or the path of a file")
    return parts


def _read_spreads(text: str) -> tuple[SpreadConstraint, ...]:
    try:
        return read_spread_defaults(text)
    except FieldInvalid as error:
        problem = f"is wrong: {error}" if error.path else error.problem
        raise Unfit(problem, error.hint) from error


def gate_name(field: str) -> str:
    """Return the name of a field of Gates as a feature gate, such as `NodeRepair`."""
    return "".join(part.capitalize() for part in field.split("_"))


GATE_FIELDS: Final = {gate_name(field): field for field in Gates.__struct_fields__}


def read_gates(text: str) -> dict[str, bool]:
    """Read `Name=true,Other=false`, including unknown names."""
    gates: dict[str, bool] = {}
    for part in text.split(","):
        name, is_pair, value = (each.strip() for each in part.partition("="))
        if not part:
            continue
        if not is_pair:
            raise Unfit(f"has `{part.strip()}` without a value", f"write {name}=true or =false")
        try:
            gates[name] = read_truth(value)
        except Unfit as error:
            raise Unfit(f"has `{name}={value}`", f"write {name}=true or {name}=false") from error
    return gates


def write_gates(gates: Gates) -> str:
    """Write every gate as `Name=true,Other=false`."""
    return ",".join(
        f"{name}={str(getattr(gates, field)).lower()}" for name, field in GATE_FIELDS.items()
    )


def unknown_gates(names: Iterable[str]) -> list[str]:
    """Return a log line for each unknown gate, with the closest known name."""
    remarks = []
    for name in sorted(set(names) - GATE_FIELDS.keys()):
        close = get_close_matches(name, GATE_FIELDS, 1)
        meant = f"; did you mean {close[0]}?" if close else ""
        remarks.append(f"there is no feature gate `{name}`; it is ignored{meant}")
    return remarks


TEXT: Final = TextForm("TEXT", str)
FILE: Final = TextForm("FILE", str)
FOLDER: Final = TextForm("DIR", str)
LIST: Final = TextForm("PATHS", _read_list, ",".join)
ADDRESS: Final = TextForm("ADDRESS", _read_address)
PORT: Final = number(least=0, most=PORT_MAX, metavar="PORT")
SWITCH: Final = TextForm("", read_truth, lambda value: str(value).lower(), is_forgiven=True)
DURATION: Final = TextForm(
    "DURATION", _read_duration, write_duration, is_forgiven=True, check=_check_duration
)


def duration(least: timedelta) -> TextForm:
    """Make the form of durations of at least `least`."""

    def check(value: timedelta) -> None:
        if value < least:
            shortest = write_duration(least)
            raise Unfit(f"is {write_duration(value)}", f"write {shortest} or more")

    return TextForm("DURATION", _read_duration, write_duration, is_forgiven=True, check=check)


GATES: Final = TextForm("NAME=BOOL,...", read_gates, write_gates)
SPREADS: Final = TextForm("YAML", _read_spreads, lambda _: "")


class Flag(Struct, frozen=True):
    """A flag, its variable in the environment, and the field of Options that it fills."""

    name: str
    field: str
    form: TextForm
    help: str
    env: str = ""
    """Empty if the flag has no variable."""
    is_negated: bool = False
    """Whether the flag is the negation of the field."""
    of: Callable[[], object] = Options
    """Returns the struct of options that has the field, with its defaults."""

    @property
    def default(self) -> str:
        """The text of the default value."""
        value = getattr(self.of(), self.field)
        return self.form.write(not value if self.is_negated else value)


class Gate(Struct, frozen=True):
    """A feature gate as help and docs/settings.md show it."""

    name: str
    stage: str
    help: str


def shared(
    name: str, field: str, form: TextForm, meaning: str, *, is_negated: bool = False
) -> Flag:
    """Make a flag that Karpenter has, too, with Karpenter's variable."""
    return Flag(name, field, form, meaning, name.upper().replace("-", "_"), is_negated)


def _own(name: str, form: TextForm, meaning: str) -> Flag:
    field = name.replace("-", "_")
    return Flag(name, field, form, meaning, _OURS + field.upper())


PROVIDER: Final = _own(
    "provider",
    TEXT,
    "The cloud to work with: `kwok` or `aws`. Not given, `--cluster-name` makes it `aws`.",
)
FLAGS: Final = (
    Flag(
        "kubeconfig",
        "kubeconfig",
        FILE,
        "The kubeconfig. Default: `KUBECONFIG`, `~/.kube/config`, the pod's service account.",
    ),
    Flag("context", "context", TEXT, "Which context of the kubeconfig."),
    PROVIDER,
    shared("karpenter-service", "service", TEXT, "Has no effect: Karpy needs no Service."),
    shared("metrics-port", "metrics_port", PORT, "Where `/metrics` is served; 0 takes any port."),
    shared(
        "health-probe-port",
        "health_port",
        PORT,
        "Where `/healthz` and `/readyz` are served; 0 takes any port.",
    ),
    Flag(
        "bind-address",
        "bind_address",
        ADDRESS,
        "The address that serves metrics and probes. Empty means all addresses of this machine.",
        "BIND_ADDRESS",
    ),
    shared(
        "kube-client-qps",
        "kube_qps",
        number(least=1),
        "Requests a second to the API server in the long run.",
    ),
    shared(
        "kube-client-burst",
        "kube_burst",
        number(least=1),
        "Requests to the API server at once.",
    ),
    shared("enable-profiling", "has_profiling", SWITCH, "Serve `/debug/pprof`, on loopback alone."),
    shared(
        "disable-controller-warmup",
        "has_warmup",
        SWITCH,
        "Has no effect: replicas always watch before they lead, to know the cluster by then.",
        is_negated=True,
    ),
    shared(
        "disable-leader-election",
        "has_leader_election",
        SWITCH,
        "Work without a lease. Only for a single replica.",
        is_negated=True,
    ),
    shared(
        "disable-cluster-state-observability",
        "has_cluster_metrics",
        SWITCH,
        "Leave out the metrics about single pods, nodes and NodePools.",
        is_negated=True,
    ),
    shared("leader-election-name", "lease_name", TEXT, "The name of the lease of leader election."),
    shared(
        "leader-election-namespace",
        "lease_namespace",
        TEXT,
        "The namespace of the lease. Empty is the namespace of the process.",
    ),
    shared(
        "memory-limit",
        "memory_limit_bytes",
        number(),
        "Has no effect: Karpenter collects garbage more often near it, while Python frees objects "
        "at once. Caches are bounded; limit the memory of the container.",
    ),
    shared(
        "cpu-requests",
        "cpu_requests_milli",
        number(),
        "The CPU request of the container, in thousandths of a core; more CPU gives more workers.",
    ),
    shared(
        "log-level",
        "log_level",
        choice(LogLevel, empty=LogLevel.INFO),
        "The lowest level of lines that are logged.",
    ),
    _own(
        "log-format",
        choice(LogFormat),
        "`json` for machines, in Karpenter's shape, or `console` for people.",
    ),
    shared(
        "log-output-paths",
        "log_outputs",
        LIST,
        "Where log lines are written: `stdout`, `stderr` or files.",
    ),
    shared(
        "log-error-output-paths",
        "log_error_outputs",
        LIST,
        "Where errors of the log itself are written.",
    ),
    shared(
        "batch-max-duration",
        "batch_max",
        DURATION,
        "The longest time to collect pending pods; a longer time finds better nodes.",
    ),
    shared(
        "batch-idle-duration",
        "batch_idle",
        DURATION,
        "The time without a new pending pod after which the decision is made.",
    ),
    shared(
        "preference-policy",
        "preference_policy",
        choice(PreferencePolicy),
        "Whether preferences of pods count as long as they can be met.",
    ),
    shared(
        "min-values-policy",
        "min_values_policy",
        choice(MinValuesPolicy),
        "Whether minValues must hold, or may be lowered to what the catalog has.",
    ),
    shared(
        "ignore-dra-requests",
        "ignore_device_claims",
        SWITCH,
        "Ignore pods that request devices by ResourceClaim.",
    ),
    shared(
        "legacy-node-repair",
        "has_legacy_repair",
        SWITCH,
        "Repair nodes as Karpenter did before v1.15. Needs the gate NodeRepair.",
    ),
    shared("feature-gates", "gates", GATES, "Features to switch on or off; see below."),
    shared(
        "scheduler-config",
        "default_spreads",
        SPREADS,
        "YAML or JSON with `podTopologySpread.defaultConstraints` as kube-scheduler has them.",
    ),
    shared(
        "instance-types-file-path",
        "instance_types_file",
        FILE,
        "The instance types of KWOK, as JSON. Empty is its 144 types.",
    ),
    _own(
        "packing",
        choice(Packing),
        "Whether to launch the plan of Karpenter's order, or the cheapest of several plans.",
    ),
    _own(
        "nominate-pods",
        choice(PodNomination),
        "Whether the planned node of a pod is written to its `status.nominatedNodeName`, if pods of"
        " several sizes need several nodes.",
    ),
    _own(
        "profiling-port", PORT, "Where `/debug/pprof` is served if it is enabled; 0 takes any port."
    ),
    _own(
        "decision-timeout",
        DURATION,
        "The time after which a decision about pods or nodes returns what it has decided so far.",
    ),
    _own("journal", FOLDER, "Record every decision in this folder, for `karpy replay`."),
    _own("journal-file-bytes", number(least=1), "The largest size of a file of the journal."),
    _own("journal-files", number(least=1), "How many files of the journal are kept."),
)
BY_NAME: Final = {flag.name: flag for flag in FLAGS}
GATE_NOTES: Final = (
    Gate(
        "NodeRepair", "alpha", "Replace or reboot nodes that the cloud's policies call unhealthy."
    ),
    Gate("ReservedCapacity", "beta", "Launch into capacity reservations, before anything else."),
    Gate(
        "SpotToSpotConsolidation",
        "alpha",
        "Replace spot nodes by cheaper spot nodes; a single one only if 15 cheaper types could "
        "take its place.",
    ),
    Gate("NodeOverlay", "alpha", "Let NodeOverlays correct prices and capacity."),
    Gate("StaticCapacity", "alpha", "Keep NodePools with `spec.replicas` at that many nodes."),
    Gate("CapacityBuffer", "alpha", "Keep spare capacity as CapacityBuffers describe it."),
    Gate(
        "TerminateFirstDrift",
        "alpha",
        "Delete a drifted node before its replacement, if there is no room for both.",
    ),
    Gate(
        "TerminateFirstRepair",
        "alpha",
        "Delete an unhealthy node before its replacement, if there is no room for both. Needs "
        "NodeRepair.",
    ),
    Gate(
        "PodDeletionCostManagement",
        "alpha",
        "Write `controller.kubernetes.io/pod-deletion-cost` on pods of ReplicaSets, so that a "
        "scale-in empties the nodes that go next; it is no disruption cost then. Needs the "
        "ClusterRole `karpy-pod-deletion-cost`.",
    ),
)
