"""Workloads, and the pods that their controllers would create."""

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from karpy.codec.admission import AS_WRITTEN, AdmissionRules
from karpy.codec.constraints import read_selector
from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.pods import PodReader, read_owners
from karpy.codec.storage import read_claim_class
from karpy.codec.uids import derived_uid
from karpy.model.constraints import LabelSelector
from karpy.model.pods import DAEMON_SET, DaemonSet, Owner, Pod, PodController, PodVolume
from karpy.model.requirements import Requirement
from karpy.model.storage import PersistentVolumeClaim

REPLICAS_MAX: Final = 250_000
HASH_LABEL: Final = "pod-template-hash"
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_JOB_NAMES: Final = ("batch.kubernetes.io/job-name", "job-name")
_API_VERSIONS: Final = {"Job": "batch/v1", "ReplicationController": "v1"}
_HASH_DIGITS: Final = 10
_TEMPLATE: Final = "spec.template"
_NAMING: Final = ("name", "namespace", "uid", "creationTimestamp")


class Workload(Struct, frozen=True):
    """A Deployment, ReplicaSet, StatefulSet, Job or ReplicationController, with its template."""

    kind: str
    owner: Owner
    """The owner of the pods: the workload itself, or the ReplicaSet of a Deployment."""
    name: str
    namespace: str
    replicas: int
    pod: Pod
    """The pod of the template, which all pods are copies of."""
    owners: tuple[Owner, ...] = ()
    selector: LabelSelector | None = None
    ordinal: int = 0
    """Number of the first pod."""
    claims: tuple[tuple[str, str | None], ...] = ()
    """Names of a StatefulSet's volumeClaimTemplates, and their StorageClass."""
    ephemeral: tuple[tuple[str, str | None], ...] = ()
    """Names of ephemeral volumes, which each pod has of its own, and their StorageClass."""


class DaemonTemplate(Struct, frozen=True):
    """The fields of a DaemonSet that its pods depend on, as they are written."""

    obj: JsonObject


def read_workload_object(
    fields: Fields, kind: str, pods: PodReader, admission: AdmissionRules = AS_WRITTEN
) -> Workload:
    """Read a Deployment, ReplicaSet, StatefulSet, Job or ReplicationController."""
    meta, spec = fields.child("metadata"), fields.child("spec")
    name, namespace = meta.needed("name"), meta.text("namespace") or "default"
    template = spec.child("template")
    owner = _owner(fields, kind, name, namespace)
    labels = dict(template.child("metadata").labels("labels"))
    if kind == "Deployment":
        digest = _template_hash(template.obj)
        labels[HASH_LABEL] = digest
        uid = derived_uid("ReplicaSet", namespace, name, digest)
        owner = Owner("apps/v1", "ReplicaSet", f"{name}-{digest}", uid, True)
    elif kind == "Job":
        labels |= dict.fromkeys(_JOB_NAMES, name)
    is_core = kind == "ReplicationController"
    return Workload(
        kind=kind,
        owner=owner,
        name=name,
        namespace=namespace,
        replicas=_pods_wanted(fields, kind),
        pod=_template_pod(fields, owner, labels, pods, admission),
        owners=read_owners(meta),
        selector=None if is_core else read_selector(spec, "selector"),
        ordinal=spec.child("ordinals").number("start", 0) or 0,
        claims=_own_claims(spec) if kind == "StatefulSet" else (),
        ephemeral=ephemeral_volumes(template.child("spec")),
    )


def read_daemon_set(
    fields: Fields, pods: PodReader, admission: AdmissionRules = AS_WRITTEN
) -> DaemonSet:
    """Read a DaemonSet and the pod it would run."""
    meta = fields.child("metadata")
    name, namespace = meta.needed("name"), meta.text("namespace") or "default"
    uid = meta.text("uid") or derived_uid("DaemonSet", namespace, name)
    labels = fields.child("spec").child("template").child("metadata").labels("labels")
    owner = Owner(*DAEMON_SET, name, uid, True)
    return DaemonSet(name, namespace, _template_pod(fields, owner, labels, pods, admission))


def read_daemon_template(fields: Fields, pods: PodReader) -> DaemonTemplate:
    """Return the fields that `read_daemon_set` reads; raise FieldInvalid if they are invalid."""
    read_daemon_set(fields, pods)
    meta, template = fields.child("metadata"), fields.child("spec").child("template")
    return DaemonTemplate(
        {
            "metadata": {key: meta.obj.get(key) for key in _NAMING},
            "spec": {
                "template": {
                    "metadata": {"labels": template.child("metadata").labels("labels")},
                    "spec": template.child("spec").obj,
                }
            },
        }
    )


def expand(workload: Workload) -> Iterable[Pod]:
    """Create the pods of a workload, with names and labels as from its controller."""
    pod = workload.pod
    own = {volume for volume, _ in workload.claims}
    kept = tuple(volume for volume in pod.rules.volumes if volume.name not in own)
    for number in range(workload.ordinal, workload.ordinal + workload.replicas):
        name = f"{workload.name}-{number}"
        labels, rules = pod.labels, pod.rules
        if workload.kind == "StatefulSet":
            labels = {**labels, _POD_NAME: name, _POD_INDEX: str(number)}
        if own:
            claims = tuple(PodVolume(each, f"{each}-{name}") for each, _ in workload.claims)
            rules = replace(rules, volumes=claims + kept)
        uid = derived_uid(workload.kind, workload.namespace, workload.name, str(number))
        yield replace(pod, name=name, uid=uid, labels=labels, rules=rules)


def claims_for(workload: Workload, pod: Pod) -> list[PersistentVolumeClaim]:
    """Make the PersistentVolumeClaims that are created with a pod of this workload."""
    made = [(f"{volume}-{pod.name}", kind) for volume, kind in workload.claims]
    made += [(f"{pod.name}-{volume}", kind) for volume, kind in workload.ephemeral]
    return [PersistentVolumeClaim(name, pod.namespace, storage_class=kind) for name, kind in made]


def replica_set(workload: Workload) -> PodController | None:
    """Make the ReplicaSet that a Deployment would have."""
    if workload.kind != "Deployment":
        return None
    digest = workload.pod.labels[HASH_LABEL]
    expressions = workload.selector.expressions if workload.selector else ()
    owner = workload.owner
    return PodController(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        namespace=workload.namespace,
        uid=owner.uid,
        selector=(*expressions, Requirement(HASH_LABEL, frozenset({digest}))),
    )


def ephemeral_volumes(spec: Fields) -> tuple[tuple[str, str | None], ...]:
    """Read the names of ephemeral volumes with a claim template, and their StorageClass."""
    return tuple(
        (
            each.needed("name"),
            read_claim_class(each.child("ephemeral").child("volumeClaimTemplate")),
        )
        for each in spec.children("volumes")
        if "ephemeral" in each and "persistentVolumeClaim" not in each
    )


def _template_pod(
    fields: Fields,
    owner: Owner,
    labels: dict[str, str],
    pods: PodReader,
    admission: AdmissionRules,
) -> Pod:
    meta = fields.child("metadata")
    namespace = meta.text("namespace") or "default"
    spec = fields.child("spec").child("template").child("spec").obj
    meta.time("creationTimestamp")
    raw_owner = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }
    obj: JsonObject = {
        "metadata": {
            "name": meta.needed("name"),
            "namespace": meta.text("namespace"),
            "uid": owner.uid,
            "creationTimestamp": meta.obj.get("creationTimestamp"),
            "labels": labels,
            "ownerReferences": [raw_owner],
        },
    }
    try:
        return pods.read({**obj, "spec": admission.admitted(spec, namespace)})
    except FieldInvalid as error:
        raise error.within(f"{fields.path}.{_TEMPLATE}" if fields.path else _TEMPLATE) from error


def _owner(fields: Fields, kind: str, name: str, namespace: str) -> Owner:
    uid = fields.child("metadata").text("uid") or derived_uid(kind, namespace, name)
    return Owner(_API_VERSIONS.get(kind, "apps/v1"), kind, name, uid, True)


def _own_claims(spec: Fields) -> tuple[tuple[str, str | None], ...]:
    return tuple(
        (each.child("metadata").needed("name"), read_claim_class(each))
        for each in spec.children("volumeClaimTemplates")
    )


def _pods_wanted(fields: Fields, kind: str) -> int:
    if "deletionTimestamp" in fields.child("metadata"):
        return 0
    return _job_pods(fields) if kind == "Job" else _replicas(fields.child("spec"), "replicas")


def _job_pods(fields: Fields) -> int:
    spec, status = fields.child("spec"), fields.child("status")
    done = {"Complete", "Failed"}
    for each in status.children("conditions"):
        if each.text("type") in done and each.text("status") == "True":
            return 0
    if spec.flag("suspend"):
        return 0
    wanted = _replicas(spec, "parallelism")
    completions = spec.number("completions")
    left = wanted if completions is None else completions - (status.number("succeeded") or 0)
    return max(0, min(wanted, left))


def _replicas(spec: Fields, key: str) -> int:
    count = spec.number(key, 1)
    assert count is not None
    if count < 0:
        spec.fail(key, f"is {count}", "write a number of 0 or more")
    if count > REPLICAS_MAX:
        spec.fail(key, f"is {count}, more than Karpy looks at", f"lower it to {REPLICAS_MAX}")
    return count


def _template_hash(template: JsonObject) -> str:
    data = msgspec.json.encode(template, order="sorted")
    return hashlib.sha256(data).hexdigest()[:_HASH_DIGITS]
