"""Validation of workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs."""

from collections.abc import Iterator
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import LabelRule, Selector, selector_of, selector_of_map
from karpy.codec.syntax import is_label_key
from karpy.model.requirements import Operator
from karpy.sim.store.answers import FieldFault, forbidden_field, invalid, required, unsupported
from karpy.sim.store.checks.pods import NOT_NEGATIVE, check_template
from karpy.sim.store.metadata import IMMUTABLE, check_labels
from karpy.sim.store.sharing import remembered

_NOBODY: Final = Selector((LabelRule("", Operator.EXISTS),))
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_NUMBERS: Final = ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
_JOB_NUMBERS: Final = ("parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished")
_JOB_RESTARTS: Final = ("OnFailure", "Never")
_ALWAYS: Final = ("Always",)
_JOB_FIXED: Final = ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex")
_SET_CHANGEABLE: Final = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)


def check_workload(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a Deployment, ReplicaSet, StatefulSet or DaemonSet."""
    spec = obj.get("spec") or {}
    kind = obj["kind"].lower()
    yield from _check_numbers(spec, _NUMBERS)
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
    else:
        yield from _selector_faults(selector)
        if not (selector.get("matchLabels") or selector.get("matchExpressions")):
            yield invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
    if selector is not None and _readable(selector) is None:
        yield invalid("spec.selector", selector, "invalid label selector")
    else:
        yield from _check_labels(spec, _readable(selector) or _NOBODY)
    yield from _template_faults(spec.get("template"))
    yield from _check_strategy(spec)
    yield from _check_restart(spec, _ALWAYS)


def check_pod_template(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a PodTemplate."""
    yield from check_template(obj.get("template"), "template")


def check_replication_controller(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a ReplicationController."""
    spec = obj.get("spec") or {}
    yield from _check_numbers(spec, _NUMBERS)
    if not spec.get("selector"):
        yield required("spec.selector")
    yield from check_template(spec.get("template"), "spec.template")
    yield from _check_labels(spec, selector_of_map(spec.get("selector")))
    yield from _check_restart(spec, _ALWAYS)


def check_job(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a Job."""
    yield from _check_job_spec(obj.get("spec") or {}, "spec")


def check_cron_job(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a CronJob."""
    spec = obj.get("spec") or {}
    if not spec.get("schedule"):
        yield required("spec.schedule")
    policy = spec.get("concurrencyPolicy")
    policies = ("Allow", "Forbid", "Replace")
    if policy not in policies:
        yield unsupported("spec.concurrencyPolicy", policy, policies)
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    yield from check_template(job.get("template"), "spec.jobTemplate.spec.template")
    yield from _check_restart(job, _JOB_RESTARTS, "spec.jobTemplate.spec")


def _check_job_spec(spec: JsonObject, path: str) -> Iterator[FieldFault]:
    yield from _check_numbers(spec, _JOB_NUMBERS)
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    yield from check_template(spec.get("template"), f"{path}.template")
    yield from _check_labels(spec, _readable(spec.get("selector")))
    yield from _check_restart(spec, _JOB_RESTARTS, path)


def compare_workloads(new: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Yield the forbidden changes of a workload: its selector is immutable."""
    selector = (new.get("spec") or {}).get("selector")
    if selector != (old.get("spec") or {}).get("selector"):
        yield invalid("spec.selector", selector, IMMUTABLE)


def compare_stateful_sets(new: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Yield the forbidden changes of a StatefulSet: most of its spec is immutable."""
    now, was = new.get("spec") or {}, old.get("spec") or {}
    if any(now.get(key) != was.get(key) for key in {**now, **was} if key not in _SET_CHANGEABLE):
        yield forbidden_field(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
            "'template', 'updateStrategy', 'revisionHistoryLimit', "
            "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        )


def compare_jobs(new: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Yield the forbidden changes of a Job."""
    now, was = new.get("spec") or {}, old.get("spec") or {}
    for field in _JOB_FIXED:
        if now.get(field) != was.get(field):
            yield invalid(f"spec.{field}", now.get(field), IMMUTABLE)
    if now.get("completions") != was.get("completions") and not _is_elastic(now, was):
        yield invalid("spec.completions", now.get("completions"), IMMUTABLE)
    is_idle = was.get("suspend") and not (old.get("status") or {}).get("startTime")
    if not is_idle and now.get("template") != was.get("template"):
        yield invalid("spec.template", now.get("template"), IMMUTABLE)


def _is_elastic(now: JsonObject, was: JsonObject) -> bool:
    # An indexed Job may change its completions together with its parallelism.
    return was.get("completionMode") == "Indexed" and now.get("completions") == now.get(
        "parallelism"
    )


def check_selector(selector: JsonObject, path: str) -> Iterator[FieldFault]:
    """Yield the faults of a label selector."""
    yield from check_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, each in enumerate(selector.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        operator = each.get("operator")
        if not is_label_key(each.get("key") or ""):
            yield invalid(f"{where}.key", each.get("key") or "", "must be a qualified name")
        if operator not in _OPERATORS:
            yield invalid(f"{where}.operator", operator or "", "not a valid selector operator")
        elif operator in {"In", "NotIn"} and not each.get("values"):
            yield required(
                f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"
            )
        elif operator not in {"In", "NotIn"} and each.get("values"):
            yield forbidden_field(
                f"{where}.values",
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )


def _read(selector: JsonObject | None) -> Selector | None:
    if selector is None or any(check_selector(selector, "")):
        return None
    return selector_of(selector)


def _list_selector_faults(selector: JsonObject) -> list[FieldFault]:
    return list(check_selector(selector, "spec.selector"))


def _list_template_faults(template: JsonObject | None) -> list[FieldFault]:
    return list(check_template(template, "spec.template"))


# A scaled workload shares its selector and its template with its last version.
_readable: Final = remembered(_read)
_selector_faults: Final = remembered(_list_selector_faults)
_template_faults: Final = remembered(_list_template_faults)


def _check_labels(spec: JsonObject, selector: Selector | None) -> Iterator[FieldFault]:
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if selector is not None and selector.rules and not selector.matches(labels):
        yield invalid(
            "spec.template.metadata.labels",
            labels,
            "`selector` does not match template `labels`",
        )


def _check_restart(
    spec: JsonObject, allowed: tuple[str, ...], path: str = "spec"
) -> Iterator[FieldFault]:
    pod = (spec.get("template") or {}).get("spec") or {}
    policy = pod.get("restartPolicy")
    if policy == "Always" and policy not in allowed:
        words = ", ".join(f'"{word}"' for word in allowed)
        yield required(f"{path}.template.spec.restartPolicy", f"valid values: {words}")
    elif policy and policy not in allowed:
        yield unsupported(f"{path}.template.spec.restartPolicy", policy, allowed)


def _check_numbers(spec: JsonObject, names: tuple[str, ...]) -> Iterator[FieldFault]:
    for name in names:
        value = spec.get(name)
        if value is not None and value < 0:
            yield invalid(f"spec.{name}", value, NOT_NEGATIVE)


def _check_strategy(spec: JsonObject) -> Iterator[FieldFault]:
    strategy = spec.get("strategy")
    if strategy is None:
        return
    kinds = ("Recreate", "RollingUpdate")
    if strategy.get("type") not in kinds:
        yield unsupported("spec.strategy.type", strategy.get("type"), kinds)
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "Recreate" and rolling is not None:
        yield forbidden_field(
            "spec.strategy.rollingUpdate",
            "may not be specified when strategy `type` is 'Recreate'",
        )
    elif rolling and {str(each).rstrip("%") for each in rolling.values()} == {"0"}:
        yield invalid(
            "spec.strategy.rollingUpdate.maxUnavailable",
            rolling.get("maxUnavailable"),
            "may not be 0 when `maxSurge` is 0",
        )
