"""The versions of each kind that are read."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from karpy.codec.fields import FieldInvalid
from karpy.codec.schemas.definitions import CUSTOM_KINDS

_APPS: Final = "apps/v1"
_STORAGE: Final = "storage.k8s.io/v1"
_NEAR: Final = 0.6
_BUILT_IN: Final[Mapping[str, str]] = {
    "CSINode": _STORAGE,
    "CronJob": "batch/v1",
    "DaemonSet": _APPS,
    "Deployment": _APPS,
    "Job": "batch/v1",
    "LimitRange": "v1",
    "Namespace": "v1",
    "Node": "v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "Pod": "v1",
    "PodDisruptionBudget": "policy/v1",
    "PodTemplate": "v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ReplicaSet": _APPS,
    "ReplicationController": "v1",
    "ResourceQuota": "v1",
    "RuntimeClass": "node.k8s.io/v1",
    "Service": "v1",
    "StatefulSet": _APPS,
    "StorageClass": _STORAGE,
}
_EARLIER_GROUP: Final = "extensions"
"""The former group of Deployments, DaemonSets and ReplicaSets."""
_TODAY: Final = {**_BUILT_IN, **{each.kind.name: each.kind.api_version for each in CUSTOM_KINDS}}
_OLD: Final[Mapping[str, tuple[str, ...]]] = {
    "AWSNodeTemplate": ("karpenter.k8s.aws/v1alpha1",),
    "EC2NodeClass": ("karpenter.k8s.aws/v1beta1",),
    "NodeClaim": ("karpenter.sh/v1beta1",),
    "NodePool": ("karpenter.sh/v1beta1",),
    "Provisioner": ("karpenter.sh/v1alpha5",),
}
"""Old versions, which are converted before they are read."""
_CONTROLLER_MADE: Final = frozenset({"Machine"})
"""Kinds of older versions that only controllers create."""
_KARPENTER_GROUPS: Final = frozenset(
    version.rpartition("/")[0]
    for kind, version in _TODAY.items()
    if kind not in _BUILT_IN and "karpenter" in version
)


def is_old(api_version: str, kind: str) -> bool:
    """Say whether objects of this version are converted before they are read."""
    return api_version in _OLD.get(kind, ())


def check_version(api_version: str, kind: str) -> None:
    """Refuse an unknown version of a known kind, and an unknown kind in a group of Karpenter."""
    known = (*_OLD.get(kind, ()), *((_TODAY[kind],) if kind in _TODAY else ()))
    if api_version in known:
        return
    group = api_version.rpartition("/")[0]
    if not known:
        if group in _KARPENTER_GROUPS:
            raise _unknown_kind(group, kind)
        return
    if _is_meant(api_version, group, kind, known):
        what = f"is `{api_version}`, and {kind} has no such version"
        raise FieldInvalid("apiVersion", what, _version_hint(api_version, kind, known))


def _version_hint(api_version: str, kind: str, known: tuple[str, ...]) -> str:
    same = [each for each in known if each.rpartition("/")[2] == api_version.rpartition("/")[2]]
    if len(known) > 1 and not same:
        old = ", ".join(known[:-1])
        return f"write `{known[-1]}`, or `{old}` if it is an old manifest"
    if len(known) == 1 and kind in _OLD:
        return f"write `{known[0]}`; as NodePool and EC2NodeClass it has newer versions"
    return f"write `{(same or known)[-1]}`"


def _is_meant(api_version: str, group: str, kind: str, known: tuple[str, ...]) -> bool:
    """Say whether an object is of the known kind, not of a namesake in another group."""
    groups = {each.rpartition("/")[0] for each in known}
    if group in groups or group == _EARLIER_GROUP or "/" not in api_version:
        return True
    # Other groups have kinds named Service or Node; these names are Karpenter's alone.
    is_unique = kind in _OLD and kind not in {"NodePool", "NodeClaim", "Provisioner"}
    return is_unique or bool(get_close_matches(group, groups - {""}, 1, _NEAR))


def _unknown_kind(group: str, kind: str) -> FieldInvalid:
    kinds = sorted(
        name
        for name, versions in {**{k: (v,) for k, v in _TODAY.items()}, **_OLD}.items()
        if any(version.rpartition("/")[0] == group for version in versions)
    )
    near = get_close_matches(kind, kinds, 1, _NEAR)
    hint = "remove the object: controllers make what they need anew"
    if near:
        hint = f"write `{near[0]}`"
    elif kind not in _CONTROLLER_MADE:
        hint = f"write one of: {', '.join(kinds)}"
    return FieldInvalid("kind", f"is `{kind}`, which is not read from {group}", hint)
