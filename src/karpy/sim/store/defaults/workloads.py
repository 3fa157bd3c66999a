"""Defaults of workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs."""

from collections.abc import Callable
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.requirements import as_integer
from karpy.sim.store.defaults.pods import default_template_spec
from karpy.sim.store.defaults.volumes import default_claim_spec
from karpy.sim.store.sharing import changed, each_changed, filled, without_nulls

_BY_UID: Final = "batch.kubernetes.io/controller-uid"
_BY_NAME: Final = "batch.kubernetes.io/job-name"
_TEMPLATE_NUMBER: Final = "deprecated.daemonset.template.generation"
_BACKOFF_MAX: Final = 2**31 - 1


def default_deployment(obj: JsonObject) -> JsonObject:
    """Set the defaults of a Deployment."""

    def fill(spec: JsonObject) -> JsonObject:
        spec = filled(
            spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
        )
        strategy = filled(spec.get("strategy") or {}, {"type": "RollingUpdate"})
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.get("rollingUpdate") or {}
            rolling = filled(rolling, {"maxUnavailable": "25%", "maxSurge": "25%"})
            strategy = {**strategy, "rollingUpdate": rolling}
        return {**spec, "strategy": strategy}

    return _with_spec(obj, fill)


def default_replica_set(obj: JsonObject) -> JsonObject:
    """Set the defaults of a ReplicaSet."""
    return _with_spec(obj, lambda spec: filled(spec, {"replicas": 1}))


def default_pod_template(obj: JsonObject) -> JsonObject:
    """Set the defaults of a PodTemplate."""
    return _with_template(obj)


def default_replication_controller(obj: JsonObject) -> JsonObject:
    """Set the defaults of a ReplicationController: selector and labels are those of its pods."""
    obj = _with_spec(obj, lambda spec: filled(spec, {"replicas": 1}))
    labels = _template_labels(obj)
    if not labels:
        return obj
    spec, meta = obj["spec"], obj["metadata"]
    if not spec.get("selector"):
        obj = {**obj, "spec": {**spec, "selector": labels}}
    return obj if meta.get("labels") else {**obj, "metadata": {**meta, "labels": labels}}


def default_daemon_set(obj: JsonObject) -> JsonObject:
    """Set the defaults of a DaemonSet."""

    def fill(spec: JsonObject) -> JsonObject:
        spec = filled(spec, {"revisionHistoryLimit": 10})
        strategy = filled(spec.get("updateStrategy") or {}, {"type": "RollingUpdate"})
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.get("rollingUpdate") or {}
            rolling = filled(rolling, {"maxUnavailable": 1, "maxSurge": 0})
            strategy = {**strategy, "rollingUpdate": rolling}
        return {**spec, "updateStrategy": strategy}

    return _with_spec(obj, fill)


def default_stateful_set(obj: JsonObject) -> JsonObject:
    """Set the defaults of a StatefulSet."""

    def fill(spec: JsonObject) -> JsonObject:
        spec = filled(
            spec,
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "podManagementPolicy": "OrderedReady",
                "serviceName": "",
            },
        )
        strategy = spec.get("updateStrategy") or {"rollingUpdate": {}}
        strategy = filled(strategy, {"type": "RollingUpdate"})
        if strategy["type"] == "RollingUpdate":
            strategy = changed(
                strategy, "rollingUpdate", lambda rolling: filled(rolling, {"partition": 0})
            )
        retention = filled(
            spec.get("persistentVolumeClaimRetentionPolicy") or {},
            {"whenDeleted": "Retain", "whenScaled": "Retain"},
        )
        spec = {
            **spec,
            "updateStrategy": strategy,
            "persistentVolumeClaimRetentionPolicy": retention,
        }
        return changed(spec, "volumeClaimTemplates", each_changed(_claim_template))

    return _with_spec(obj, fill)


def _claim_template(claim: JsonObject) -> JsonObject:
    claim = changed(claim, "spec", default_claim_spec)
    claim = filled(claim, {"apiVersion": "v1", "kind": "PersistentVolumeClaim"})
    return {**claim, "status": {"phase": "Pending"}}


def default_job(obj: JsonObject) -> JsonObject:
    """Set the defaults of a Job."""
    obj = _with_spec(obj, default_job_spec)
    labels = _template_labels(obj)
    meta = obj["metadata"]
    if labels and not meta.get("labels"):
        return {**obj, "metadata": {**meta, "labels": labels}}
    return obj


def default_job_spec(spec: JsonObject) -> JsonObject:
    """Set the defaults of the spec of a Job."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec = {**spec, "completions": 1, "parallelism": 1}
    backoff = _BACKOFF_MAX if spec.get("backoffLimitPerIndex") is not None else 6
    replacement = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    return filled(
        spec,
        {
            "parallelism": 1,
            "backoffLimit": backoff,
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": replacement,
            "manualSelector": False,
        },
    )


def begin_job(obj: JsonObject) -> JsonObject:
    """Set the selector and the pod labels of a new Job from its UID."""
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    if spec.get("manualSelector"):
        return _with_status(obj)
    own = {_BY_UID: meta["uid"]}
    names = {**own, "controller-uid": meta["uid"], _BY_NAME: meta["name"], "job-name": meta["name"]}
    template = spec.get("template") or {}
    template_meta = template.get("metadata") or {}
    given = template_meta.get("labels") or {}
    labels = {**given, **names}
    if (meta.get("labels") or {}) == given:
        # A Job without labels gets those of its pods.
        obj = {**obj, "metadata": {**meta, "labels": labels}}
    selector = spec.get("selector") or {}
    spec = {
        **spec,
        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **own}},
        "template": {**template, "metadata": {**template_meta, "labels": labels}},
    }
    return _with_status({**obj, "spec": spec})


def default_cron_job(obj: JsonObject) -> JsonObject:
    """Set the defaults of a CronJob; its Jobs get theirs when they are created."""

    def fill(spec: JsonObject) -> JsonObject:
        spec = filled(
            spec,
            {
                "concurrencyPolicy": "Allow",
                "suspend": False,
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
            },
        )
        return changed(spec, "jobTemplate", _job_template)

    return _with_spec(obj, fill)


def _job_template(job: JsonObject) -> JsonObject:
    def named(spec: JsonObject) -> JsonObject:
        return changed(spec, "template", lambda pod: filled(pod, {"metadata": {}}))

    job = filled(changed(job, "spec", _with_template), {"metadata": {}})
    return changed(job, "spec", named)


def _with_status(obj: JsonObject) -> JsonObject:
    return {**obj, "status": {}}


def begin_with_empty_status(obj: JsonObject) -> JsonObject:
    """Set the empty status that typed clients expect."""
    return _with_status(obj)


def begin_replicas(obj: JsonObject) -> JsonObject:
    """Set a status of zero replicas."""
    return {**obj, "status": {"replicas": 0}}


def begin_stateful_set(obj: JsonObject) -> JsonObject:
    """Set the status of a new StatefulSet: zero replicas."""
    return {**obj, "status": {"replicas": 0, "availableReplicas": 0}}


def begin_daemon_set(obj: JsonObject) -> JsonObject:
    """Set the status of a new DaemonSet, and the number of its template."""
    counts = (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
    )
    return _with_template_number({**obj, "status": dict.fromkeys(counts, 0)}, 1)


def keep_template_number(new: JsonObject, old: JsonObject) -> JsonObject:
    """Increase the template number of a DaemonSet if its template changed."""
    noted = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_NUMBER, "")
    number = as_integer(noted) or 0
    is_same = (new.get("spec") or {}).get("template") == old["spec"].get("template")
    return _with_template_number(new, number if is_same else number + 1)


def _with_template_number(obj: JsonObject, number: int) -> JsonObject:
    meta = obj["metadata"]
    annotations = {**(meta.get("annotations") or {}), _TEMPLATE_NUMBER: str(number)}
    return {**obj, "metadata": {**meta, "annotations": annotations}}


def _with_spec(obj: JsonObject, fill: Callable[[JsonObject], JsonObject]) -> JsonObject:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    new = _with_template(fill(without_nulls(spec)))
    return {**obj, "spec": new}


def _with_template(spec: JsonObject) -> JsonObject:
    template = spec.get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return spec
    filled_in = default_template_spec(template["spec"])
    if filled_in is template["spec"]:
        return spec
    return {**spec, "template": {**template, "spec": filled_in}}


def _template_labels(obj: JsonObject) -> JsonObject:
    template = (obj.get("spec") or {}).get("template") or {}
    labels: JsonObject = (template.get("metadata") or {}).get("labels") or {}
    return labels
