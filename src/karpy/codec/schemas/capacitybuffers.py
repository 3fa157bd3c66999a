"""CapacityBuffer, autoscaling.x-k8s.io/v1beta1."""

from typing import Annotated

from msgspec import Meta

from karpy.codec.schemas.conditions import Conditions
from karpy.codec.schemas.wire import (
    Int32,
    Int64,
    Natural32,
    Resources,
    SchemaRule,
    Wire,
    about,
    rules,
)

_Name = Annotated[str, Meta(min_length=1)]


class PodTemplateRef(Wire, frozen=True):
    """A PodTemplate in the same namespace."""

    name: Annotated[_Name, about("The name of the PodTemplate.")]


class ScalableRef(Wire, frozen=True):
    """Something with replicas in the same namespace, such as a Deployment."""

    kind: Annotated[_Name, about("Its kind.")]
    name: Annotated[_Name, about("Its name.")]
    api_group: Annotated[str | None, about("Its API group; empty for the core group.")] = None


class CapacityBufferSpec(Wire, frozen=True):
    """How much room to keep free, and for which kind of pods."""

    limits: Annotated[Resources | None, about("How much room to keep at most, by resource.")] = None
    percentage: Annotated[
        Natural32 | None,
        about("Keep room for so many percent of the replicas of what `scalableRef` names."),
    ] = None
    pod_template_ref: Annotated[
        PodTemplateRef | None, about("Pods of this template shall find room.")
    ] = None
    provisioning_strategy: Annotated[
        str, about("How room is kept; the default one has nodes running before pods need them.")
    ] = "buffer.x-k8s.io/active-capacity"
    replicas: Annotated[Natural32 | None, about("Keep room for so many pods.")] = None
    scalable_ref: Annotated[
        ScalableRef | None, about("Pods such as this workload's shall find room.")
    ] = None


RuledCapacityBufferSpec = Annotated[
    CapacityBufferSpec,
    rules(
        SchemaRule(
            "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
            "'podTemplateRef' needs 'replicas' or 'limits'",
        ),
        SchemaRule(
            "!(has(self.podTemplateRef) && has(self.scalableRef))",
            "cannot set both 'podTemplateRef' and 'scalableRef'",
        ),
    ),
]


class CapacityBufferStatus(Wire, frozen=True):
    """What the buffer amounts to now."""

    conditions: Conditions | None = None
    pod_template_generation: Annotated[
        Int64 | None, about("The generation of the PodTemplate that was last looked at.")
    ] = None
    pod_template_ref: Annotated[
        PodTemplateRef | None, about("The PodTemplate that pods of the buffer are made of.")
    ] = None
    provisioning_strategy: Annotated[str | None, about("How room is being kept.")] = None
    replicas: Annotated[Int32 | None, about("For how many pods room is being kept.")] = None
