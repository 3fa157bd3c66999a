"""Pods as tenants carry them."""

from karpy.codec.constraints import read_tolerations
from karpy.codec.fields import Fields
from karpy.codec.pods import read_owners
from karpy.model.annotations import DO_NOT_DISRUPT
from karpy.model.leaving import DEFAULT_GRACE, LeavingPod
from karpy.model.pods import DAEMON_SET, NODE
from karpy.model.times import span


def read_leaving_pod(fields: Fields) -> LeavingPod:
    """Read what a drain needs to know of a pod."""
    meta, spec, status = (fields.child(key) for key in ("metadata", "spec", "status"))
    name, grace = meta.needed("name"), spec.number("terminationGracePeriodSeconds")
    owners = {(each.api_version, each.kind) for each in read_owners(meta)}
    return LeavingPod(
        name=name,
        namespace=meta.text("namespace") or "default",
        uid=meta.text("uid"),
        node_name=spec.text("nodeName"),
        phase=status.text("phase"),
        started=status.time("startTime"),
        deleted=meta.time("deletionTimestamp"),
        grace=DEFAULT_GRACE if grace is None else span(grace),
        priority_class=spec.text("priorityClassName"),
        do_not_disrupt=meta.labels("annotations").get(DO_NOT_DISRUPT),
        tolerations=read_tolerations(spec),
        is_daemon=DAEMON_SET in owners,
        is_static=NODE in owners,
        volume_claims=_volume_claims(spec, name),
    )


def _volume_claims(spec: Fields, pod: str) -> tuple[str, ...]:
    claims = []
    for each in spec.children("volumes"):
        if "persistentVolumeClaim" in each:
            claims.append(each.child("persistentVolumeClaim").needed("claimName"))
        elif "ephemeral" in each:
            claims.append(f"{pod}-{each.needed('name')}")
    return tuple(claims)
