"""What the system keeps of a node's capacity."""

from collections.abc import Mapping
from typing import Final

from karpy.core.aws.amifamilies import TRAITS
from karpy.core.aws.capacity import eni_pods
from karpy.model.ec2types import InstanceSettings, InstanceTypeInfo
from karpy.model.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    Resources,
    add,
    parse_quantity,
)

_MIB: Final = 2**20
_GIB: Final = 2**30
_CPU_BANDS: Final = ((1000, 600), (1000, 100), (2000, 50))
"""How many thousandths of a core come next, and of each 10,000 of them how many are kept."""
_CPU_BEYOND: Final = 25
_MEMORY_PER_POD: Final = 11 * _MIB
_MEMORY_ALWAYS: Final = 255 * _MIB
_EVICTION_MEMORY: Final = 100 * _MIB
_HUNDREDTHS: Final = 10_000
_SIGNALS: Final = {"memory.available": MEMORY, "nodefs.available": EPHEMERAL_STORAGE}
_ALL: Final = "100"
"""Percent of a resource; an eviction threshold of that is none."""


def overhead(info: InstanceTypeInfo, settings: InstanceSettings, capacity: Resources) -> Resources:
    """Return what is reserved, and what must stay free lest pods are evicted."""
    kubelet = settings.kubelet
    return add(
        {**_kube_reserved(info, settings, capacity), **_amounts(kubelet.kube_reserved)},
        _amounts(kubelet.system_reserved),
        _eviction_thresholds(capacity, kubelet.eviction_hard),
    )


def _kube_reserved(
    info: InstanceTypeInfo, settings: InstanceSettings, capacity: Resources
) -> dict[str, int]:
    pods = capacity[PODS]
    if TRAITS[settings.family].reserves_for_eni_pods:
        pods = eni_pods(info, settings)
    return {
        CPU: _kept_cpu(capacity[CPU]),
        MEMORY: _MEMORY_PER_POD * pods + _MEMORY_ALWAYS,
        EPHEMERAL_STORAGE: _GIB,
    }


def _amounts(texts: Mapping[str, str]) -> dict[str, int]:
    return {name: parse_quantity(text, name) for name, text in texts.items()}


def _kept_cpu(milli: int) -> int:
    kept = 0
    for width, share in _CPU_BANDS:
        kept += min(milli, width) * share // _HUNDREDTHS
        milli = max(0, milli - width)
    return kept + milli * _CPU_BEYOND // _HUNDREDTHS


def _eviction_thresholds(capacity: Resources, hard: Mapping[str, str]) -> dict[str, int]:
    kept = {
        MEMORY: _EVICTION_MEMORY,
        EPHEMERAL_STORAGE: -(-capacity[EPHEMERAL_STORAGE] // 10),
    }
    for signal, resource in _SIGNALS.items():
        text = hard.get(signal, "")
        if text:
            kept[resource] = _threshold(text, capacity[resource], resource)
    return kept


def _threshold(text: str, amount: int, resource: str) -> int:
    """Read an amount, or a percentage of all there is with two decimals at most."""
    if not text.endswith("%"):
        return parse_quantity(text, resource)
    whole, _, part = text.removesuffix("%").partition(".")
    if whole == _ALL:
        return 0
    return -(-amount * int(whole + f"{part:0<2}"[:2]) // _HUNDREDTHS)
