"""The kubelet settings of an EC2NodeClass."""

from typing import Annotated, Final

from msgspec import Meta

from karpy.codec.schemas.wire import (
    QUANTITY_PATTERN,
    Int32,
    Natural32,
    SchemaRule,
    Wire,
    about,
    number_format,
    rules,
)

_PERCENT_MAX: Final = 100
_RESERVABLE: Final = ("cpu", "memory", "ephemeral-storage", "pid")
_SIGNALS: Final = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)
_THRESHOLD: Final = (
    rf"^((\d{{1,2}}(\.\d{{1,2}})?|100(\.0{{1,2}})?)%||{QUANTITY_PATTERN.strip('^$')})$"
)


def _keys(name: str, keys: tuple[str, ...]) -> SchemaRule:
    listed = ", ".join(f"'{key}'" for key in keys)
    return SchemaRule(f"self.all(x, x in [{listed}])", f"valid keys for {name} are {listed}")


def _reserved(name: str) -> Meta:
    return rules(
        _keys(name, _RESERVABLE),
        SchemaRule(
            "self.all(x, !self[x].startsWith('-'))",
            f"{name} value cannot be a negative resource quantity",
        ),
    )


_Amount = Annotated[str, Meta(pattern=QUANTITY_PATTERN)]
_Threshold = Annotated[str, Meta(pattern=_THRESHOLD)]
_Percent = Annotated[int, number_format("int32"), Meta(ge=0, le=_PERCENT_MAX)]


class Kubelet(Wire, frozen=True):
    """Settings of the kubelet that also change how many pods fit."""

    cluster_dns: Annotated[
        list[str] | None, about("Addresses of the DNS servers that pods are given.")
    ] = None
    cpu_cfs_quota: Annotated[
        bool | None, about("Whether CPU limits of containers are enforced.")
    ] = None
    eviction_hard: Annotated[
        Annotated[dict[str, _Threshold], rules(_keys("evictionHard", _SIGNALS))] | None,
        about("Below this pods are evicted at once: an amount or a percentage by signal."),
    ] = None
    eviction_max_pod_grace_period: Annotated[
        Int32 | None, about("Seconds that pods get at most to stop on a soft eviction.")
    ] = None
    eviction_soft: Annotated[
        Annotated[dict[str, _Threshold], rules(_keys("evictionSoft", _SIGNALS))] | None,
        about("Below this pods are evicted after a while: an amount or a percentage by signal."),
    ] = None
    eviction_soft_grace_period: Annotated[
        Annotated[dict[str, str], rules(_keys("evictionSoftGracePeriod", _SIGNALS))] | None,
        about("How long a signal of `evictionSoft` must last, by signal."),
    ] = None
    image_gc_high_threshold_percent: Annotated[
        _Percent | None, about("How full the disk may get before images are removed.")
    ] = None
    image_gc_low_threshold_percent: Annotated[
        _Percent | None, about("How empty the disk must be before removing images ends.")
    ] = None
    kube_reserved: Annotated[
        Annotated[dict[str, _Amount], _reserved("kubeReserved")] | None,
        about("What is kept for Kubernetes itself, by resource."),
    ] = None
    max_pods: Annotated[Natural32 | None, about("How many pods a node takes at most.")] = None
    pods_per_core: Annotated[
        Natural32 | None, about("How many pods a node takes at most for each core.")
    ] = None
    system_reserved: Annotated[
        Annotated[dict[str, _Amount], _reserved("systemReserved")] | None,
        about("What is kept for the operating system, by resource."),
    ] = None


def _matched(first: str, second: str) -> SchemaRule:
    return SchemaRule(
        f"!has(self.{first}) || self.{first}.all(e, has(self.{second}) && e in self.{second})",
        f"every key of {first} needs an entry in {second}",
    )


KUBELET_RULES: Final = rules(
    SchemaRule(
        "!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || "
        "self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent",
        "imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",
    ),
    _matched("evictionSoft", "evictionSoftGracePeriod"),
    _matched("evictionSoftGracePeriod", "evictionSoft"),
)
