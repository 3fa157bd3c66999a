"""Tables of workloads and PodDisruptionBudgets."""

from datetime import datetime
from typing import Any, Final

from karpy.adapters.apiserver.tables.cells import (
    NONE,
    age,
    condition,
    containers,
    human_duration,
    labels_text,
    name_of,
    part,
    selector_text,
    since,
)
from karpy.adapters.apiserver.tables.printers import Printer, columns
from karpy.codec.fields import JsonObject


def _deployment(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    names, images = containers(part(spec, "template"))
    return [
        name_of(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        names,
        images,
        selector_text(spec.get("selector")),
    ]


def _replica_set(obj: JsonObject, now: datetime) -> list[Any]:
    return [*_replicas(obj, now), selector_text(part(obj, "spec").get("selector"))]


def _replication_controller(obj: JsonObject, now: datetime) -> list[Any]:
    return [*_replicas(obj, now), labels_text(part(obj, "spec").get("selector"))]


def _replicas(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        name_of(obj),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
        *containers(part(spec, "template")),
    ]


def _pod_template(obj: JsonObject, _: datetime) -> list[Any]:
    template = part(obj, "template")
    labels = labels_text(part(template, "metadata").get("labels"))
    return [name_of(obj), *containers(template), labels]


def _stateful_set(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        name_of(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        age(obj, now),
        *containers(part(spec, "template")),
    ]


def _daemon_set(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    template = part(spec, "template")
    return [
        name_of(obj),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        labels_text(part(template, "spec").get("nodeSelector")),
        age(obj, now),
        *containers(template),
        selector_text(spec.get("selector")),
    ]


def _controller_revision(obj: JsonObject, now: datetime) -> list[Any]:
    owners = obj["metadata"].get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    return [
        name_of(obj),
        _owner(owner) if owner else NONE,
        obj.get("revision", 0),
        age(obj, now),
    ]


def _owner(owner: JsonObject) -> str:
    group, has_group, _ = str(owner["apiVersion"]).rpartition("/")
    kind = str(owner["kind"]).lower()
    return f"{kind}.{group}/{owner['name']}" if has_group else f"{kind}/{owner['name']}"


def _job(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        name_of(obj),
        _job_state(obj),
        _completions(spec, status),
        _job_duration(status, now),
        age(obj, now),
        *containers(part(spec, "template")),
        selector_text(spec.get("selector")),
    ]


def _job_state(job: JsonObject) -> str:
    states = (
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    )
    if found := _first_true(job, states[:2]):
        return found
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    return _first_true(job, states[2:]) or "Running"


def _first_true(job: JsonObject, states: tuple[tuple[str, str], ...]) -> str:
    return next(
        (state for type_, state in states if condition(job, type_).get("status") == "True"), ""
    )


def _completions(spec: JsonObject, status: JsonObject) -> str:
    done = status.get("succeeded", 0)
    if (wanted := spec.get("completions")) is not None:
        return f"{done}/{wanted}"
    parallel = spec.get("parallelism", 0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(status: JsonObject, now: datetime) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    if not end:
        return since(start, now)
    passed = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return human_duration(passed.total_seconds())


def _cron_job(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    last = status.get("lastScheduleTime")
    job = part(spec, "jobTemplate", "spec")
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        age(obj, now),
        *containers(part(job, "template")),
        selector_text(job.get("selector")),
    ]


def _budget(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        name_of(obj),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        status.get("disruptionsAllowed", 0),
        age(obj, now),
    ]


_CONTAINERS: Final = "(Containers) | (Images)"
_REPLICAS: Final = f"Name | #Desired | #Current | #Ready | Age | {_CONTAINERS} | (Selector)"

WORKLOADS: Final = {
    ("apps", "Deployment"): Printer(
        columns(f"Name | Ready | Up-to-date | Available | Age | {_CONTAINERS} | (Selector)"),
        _deployment,
    ),
    ("apps", "ReplicaSet"): Printer(columns(_REPLICAS), _replica_set),
    ("", "PodTemplate"): Printer(columns("Name | Containers | Images | Pod Labels"), _pod_template),
    ("", "ReplicationController"): Printer(columns(_REPLICAS), _replication_controller),
    ("apps", "StatefulSet"): Printer(columns(f"Name | Ready | Age | {_CONTAINERS}"), _stateful_set),
    ("apps", "DaemonSet"): Printer(
        columns(
            "Name | #Desired | #Current | #Ready | #Up-to-date | #Available | Node Selector | Age "
            f"| {_CONTAINERS} | (Selector)"
        ),
        _daemon_set,
    ),
    ("apps", "ControllerRevision"): Printer(
        columns("Name | Controller | Revision | Age"), _controller_revision
    ),
    ("batch", "Job"): Printer(
        columns(f"Name | Status | Completions | Duration | Age | {_CONTAINERS} | (Selector)"), _job
    ),
    ("batch", "CronJob"): Printer(
        columns(
            "Name | Schedule | Timezone | ?Suspend | #Active | Last Schedule | Age "
            f"| {_CONTAINERS} | (Selector)"
        ),
        _cron_job,
    ),
    ("policy", "PodDisruptionBudget"): Printer(
        columns("Name | Min Available | Max Unavailable | #Allowed Disruptions | Age"), _budget
    ),
}
