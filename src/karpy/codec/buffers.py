"""CapacityBuffers to records, changes of records to a status, and the templates of buffers."""

from msgspec import Struct

from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.pods import PodReader
from karpy.codec.records import (
    Writes,
    read_conditions,
    read_identity,
    write_conditions,
    write_status,
)
from karpy.model.buffers import ACTIVE_CAPACITY, BufferRecord, PodSource, ScalableRef
from karpy.model.conditions import Conditions
from karpy.model.kinds import POD_TEMPLATE


class FoundBuffer(Struct, frozen=True):
    """A CapacityBuffer of the input, with what it refers to."""

    record: BufferRecord
    source: PodSource | None
    """None if the input does not hold it."""
    where: str = ""
    """The buffer as error messages name it: file, document, kind and name."""


def read_buffer_record(fields: Fields) -> BufferRecord:
    """Read a CapacityBuffer of autoscaling.x-k8s.io/v1beta1."""
    spec, status = fields.child("spec"), fields.child("status")
    return BufferRecord(
        meta=read_identity(fields),
        namespace=fields.child("metadata").text("namespace") or "default",
        strategy=spec.text("provisioningStrategy", ACTIVE_CAPACITY),
        pod_template=spec.child("podTemplateRef").text("name"),
        scalable=_scalable(spec.child("scalableRef")) if "scalableRef" in spec else None,
        replicas=spec.number("replicas"),
        percentage=spec.number("percentage"),
        limits=spec.quantities("limits"),
        settled_strategy=status.text("provisioningStrategy"),
        settled_template=status.child("podTemplateRef").text("name"),
        settled_generation=status.number("podTemplateGeneration"),
        settled_replicas=status.number("replicas"),
        conditions=Conditions(read_conditions(status)),
    )


def buffer_writes(before: BufferRecord, after: BufferRecord) -> Writes:
    """Return the patch that turns one record of a CapacityBuffer into another: of its status."""
    status: JsonObject = {}
    if before.settled_strategy != after.settled_strategy:
        status["provisioningStrategy"] = after.settled_strategy
    if before.settled_template != after.settled_template:
        name = after.settled_template
        status["podTemplateRef"] = {"name": name} if name else None
    if before.settled_generation != after.settled_generation:
        status["podTemplateGeneration"] = after.settled_generation
    if before.settled_replicas != after.settled_replicas:
        status["replicas"] = after.settled_replicas
    if before.conditions.items != after.conditions.items:
        status["conditions"] = write_conditions(after.conditions.items)
    return Writes(status=write_status(after.meta, status))


def read_pod_source(fields: Fields, kind: str, pods: PodReader) -> PodSource:
    """Read the pod and the replicas of a PodTemplate, Deployment, StatefulSet or ReplicaSet."""
    is_template = kind == POD_TEMPLATE.name
    meta, spec = fields.child("metadata"), fields.child("spec")
    template = (fields if is_template else spec).child("template")
    pod: JsonObject = {
        "metadata": {
            "name": meta.needed("name"),
            "namespace": meta.text("namespace"),
            "uid": meta.text("uid"),
            "labels": template.child("metadata").labels("labels"),
        },
        "spec": template.child("spec").obj,
    }
    try:
        template_pod = pods.read(pod)
    except FieldInvalid as error:
        raise error.within(template.path) from error
    return PodSource(
        template_pod,
        0 if is_template else spec.number("replicas", 1) or 0,
        meta.number("generation") or 0,
    )


def _scalable(ref: Fields) -> ScalableRef:
    return ScalableRef(ref.needed("kind"), ref.needed("name"), ref.text("apiGroup"))
