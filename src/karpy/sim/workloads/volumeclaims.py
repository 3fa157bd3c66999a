"""The PersistentVolumeClaims of StatefulSets: one per template and ordinal."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from karpy.sim.workloads.owners import control_reference

_DELETE: Final = "Delete"


def claim_name(stateful_set: JsonObject, template: JsonObject, ordinal: int) -> str:
    """Return the name of the claim of a template and an ordinal."""
    return f"{template['metadata']['name']}-{stateful_set['metadata']['name']}-{ordinal}"


def claims_for(stateful_set: JsonObject, ordinal: int) -> list[JsonObject]:
    """Return the claims of the pod of an ordinal."""
    spec, namespace = stateful_set["spec"], stateful_set["metadata"]["namespace"]
    chosen = (spec.get("selector") or {}).get("matchLabels") or {}
    claims = []
    for template in spec.get("volumeClaimTemplates") or ():
        given = template["metadata"]
        meta = {
            "name": claim_name(stateful_set, template, ordinal),
            "namespace": namespace,
            "labels": {**(given.get("labels") or {}), **chosen},
        }
        if annotations := given.get("annotations"):
            meta["annotations"] = annotations
        claims.append(
            {
                "apiVersion": PERSISTENT_VOLUME_CLAIM.api_version,
                "kind": PERSISTENT_VOLUME_CLAIM.name,
                "metadata": meta,
                "spec": template["spec"],
            }
        )
    return claims


def deletes_when(stateful_set: JsonObject, occasion: str) -> bool:
    """Say whether the retention policy deletes claims on an occasion: whenDeleted or whenScaled."""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return bool(policy.get(occasion) == _DELETE)


def with_right_owners(
    claim: JsonObject, stateful_set: JsonObject, pod: JsonObject, *, is_condemned: bool
) -> JsonObject:
    """
    Return a claim with the owner references of the retention policy, unchanged if it has them.

    A condemned pod owns its claim if the policy deletes claims on scale-down; else the StatefulSet
    owns the claim if the policy deletes claims with it. A claim of another controller, or of an
    earlier StatefulSet of that name, is not changed.
    """
    meta = claim["metadata"]
    present = meta.get("ownerReferences") or []
    own = {stateful_set["metadata"]["uid"], pod["metadata"]["uid"]}
    others = [each for each in present if each["uid"] not in own]
    if any(each.get("controller") for each in others):
        return claim
    wanted = []
    if deletes_when(stateful_set, "whenScaled") and is_condemned:
        wanted.append(control_reference(POD, pod))
    elif deletes_when(stateful_set, "whenDeleted"):
        wanted.append(control_reference(STATEFUL_SET, stateful_set))
    if [*others, *wanted] == present:
        return claim
    changed = {key: value for key, value in meta.items() if key != "ownerReferences"}
    if others or wanted:
        changed["ownerReferences"] = [*others, *wanted]
    return {**claim, "metadata": changed}


def is_stale(claim: JsonObject, stateful_set: JsonObject, pod_name: str) -> bool:
    """Say whether a claim is owned by an earlier pod of that name and will be deleted with it."""
    if not deletes_when(stateful_set, "whenScaled"):
        return False
    return any(
        each["kind"] == POD.name and each["name"] == pod_name
        for each in claim["metadata"].get("ownerReferences") or ()
    )
