"""The completion indexes of Indexed Jobs."""

from collections.abc import Iterable
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.requirements import as_integer

COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_GENERATED_MAX: Final = 58
_FROM_LABEL: Final = {
    "name": _VARIABLE,
    "valueFrom": {
        "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}
    },
}


def is_indexed(job: JsonObject) -> bool:
    """Say whether the completion mode of a Job is Indexed."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: JsonObject) -> int | None:
    """Return the completion index of a pod, None if it has none."""
    return _number(pod, COMPLETION_INDEX)


def failures_before(pod: JsonObject) -> int:
    """Return how many pods of the same index had failed when this one was created."""
    return _number(pod, FAILURE_COUNT) or 0


def index_text(indexes: Iterable[int]) -> str:
    """Write indexes as `1,3-5`; two consecutive indexes are listed singly."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(_span_text(*span) for span in spans)


def read_indexes(text: str | None, completions: int) -> set[int]:
    """Read indexes below `completions` from `1,3-5`."""
    found: set[int] = set()
    for span in filter(None, (text or "").split(",")):
        first, _, last = span.partition("-")
        start, stop = as_integer(first), as_integer(last or first)
        if start is not None and stop is not None:
            found.update(range(max(0, start), min(completions, stop + 1)))
    return found


def numbered(
    template: JsonObject, job: str, index: int, failures: int | None
) -> tuple[JsonObject, str]:
    """Return the template of the pod of an index, and the prefix of its name."""
    meta, spec = template.get("metadata") or {}, template["spec"]
    annotations = {**(meta.get("annotations") or {}), COMPLETION_INDEX: str(index)}
    if failures is not None:
        annotations[FAILURE_COUNT] = str(failures)
    labels = {**(meta.get("labels") or {}), COMPLETION_INDEX: str(index)}
    changed = {**spec, "hostname": f"{job}-{index}"}
    for field in ("initContainers", "containers"):
        if spec.get(field):
            changed[field] = [_with_variable(container) for container in spec[field]]
    ending = f"-{index}-"
    numbered_template = {
        **template,
        "metadata": {**meta, "annotations": annotations, "labels": labels},
        "spec": changed,
    }
    return numbered_template, job[: _GENERATED_MAX - len(ending)] + ending


def _with_variable(container: JsonObject) -> JsonObject:
    present = container.get("env") or []
    if any(each["name"] == _VARIABLE for each in present):
        return container
    return {**container, "env": [*present, _FROM_LABEL]}


def _number(pod: JsonObject, annotation: str) -> int | None:
    text = (pod["metadata"].get("annotations") or {}).get(annotation, "")
    return as_integer(text) if text.isdecimal() else None


def _span_text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
