"""The template of a NodePool as it is written: NodeClaims drift if it changes."""

from karpy.codec.constraints import read_taints
from karpy.codec.fields import Fields, read_duration
from karpy.model.constraints import Taint
from karpy.model.pools import PoolTemplate
from karpy.model.records import NodeClassRef


def read_template(fields: Fields) -> PoolTemplate:
    """Read the template of a NodePool; an absent field is None, unlike an empty one."""
    template = fields.child("spec").child("template")
    meta, spec = template.child("metadata"), template.child("spec")
    return PoolTemplate(
        labels=meta.labels("labels") if "labels" in meta else None,
        annotations=meta.labels("annotations") if "annotations" in meta else None,
        taints=_taints(spec, "taints"),
        startup_taints=_taints(spec, "startupTaints"),
        node_class=_node_class(spec),
        grace_period=read_duration(spec, "terminationGracePeriod"),
        expire_after=read_duration(spec, "expireAfter"),
    )


# Differs: `timeAdded` of a taint in a NodePool's template: Karpenter hashes it in the time zone of
# the process, so that nodes may drift in another zone; Karpy leaves it out of the hash.
def _taints(spec: Fields, key: str) -> tuple[Taint, ...] | None:
    return read_taints(spec, key) if key in spec else None


def _node_class(spec: Fields) -> NodeClassRef | None:
    if "nodeClassRef" not in spec:
        return None
    ref = spec.child("nodeClassRef")
    return NodeClassRef(ref.text("group"), ref.text("kind"), ref.text("name"))
