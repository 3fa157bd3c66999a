"""Label keys that users must not set or ask for, as CEL rules."""

from collections.abc import Iterable
from typing import Final

from karpy.codec.schemas.wire import SchemaRule
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, NODE_POOL

_AWS_INSTANCE: Final = (
    "accelerator-count",
    "accelerator-manufacturer",
    "accelerator-name",
    "capability-flex",
    "category",
    "cpu",
    "cpu-manufacturer",
    "cpu-sustained-clock-speed-mhz",
    "ebs-bandwidth",
    "encryption-in-transit-supported",
    "family",
    "generation",
    "gpu-count",
    "gpu-manufacturer",
    "gpu-memory",
    "gpu-name",
    "hypervisor",
    "local-nvme",
    "memory",
    "network-bandwidth",
    "size",
)
_AWS_LAUNCH: Final = (
    "capacity-reservation-id",
    "capacity-reservation-interruptible",
    "capacity-reservation-type",
    "instance-tenancy",
    "placement-group-id",
    "placement-group-partition",
)
"""Labels that a machine gets when it is launched; no instance type has them."""
_KWOK: Final = (
    "instance-cpu",
    "instance-family",
    "instance-memory",
    "instance-size",
    "kwoknodeclass",
)

_AWS_TYPE_LABELS: Final = ("ec2nodeclass", *(f"instance-{each}" for each in _AWS_INSTANCE))
AWS_LABELS: Final = tuple(f"karpenter.k8s.aws/{each}" for each in (*_AWS_TYPE_LABELS, *_AWS_LAUNCH))
"""All keys of the domain karpenter.k8s.aws that a NodePool may name."""


def _own(domain: str, names: Iterable[str]) -> str:
    """Write a condition: `KEY` is outside the domain, or one of these names in it."""
    # Parity: label domains that end in `karpenter.sh`: as in Karpenter's rule, each counts as
    # Karpenter's own, also `my-karpenter.sh`.
    allowed = ", ".join(f"'{domain}/{name}'" for name in sorted(names))
    return f"KEY in [{allowed}] || !KEY.split('/')[0].endsWith('{domain}')"


def _domain(domain: str, names: Iterable[str]) -> SchemaRule:
    return SchemaRule(_own(domain, names), f'label domain "{domain}" is restricted')


def _label(key: str) -> SchemaRule:
    return SchemaRule(f"KEY != '{key}'", f'label "{key}" is restricted')


_KARPENTER: Final = _domain(
    "karpenter.sh", (key.partition("/")[2] for key in (CAPACITY_TYPE, NODE_POOL))
)
_AWS: Final = _domain("karpenter.k8s.aws", (*_AWS_TYPE_LABELS, *_AWS_LAUNCH))
_AWS_TYPES_ALONE: Final = _domain("karpenter.k8s.aws", _AWS_TYPE_LABELS)
_KWOK_DOMAIN: Final = _domain("karpenter.kwok.sh", _KWOK)


def _of(subject: str, *checks: SchemaRule) -> tuple[SchemaRule, ...]:
    return tuple(
        SchemaRule(each.expression.replace("KEY", subject), each.message) for each in checks
    )


CLAIM_KEY: Final = _of("self", _KARPENTER, _label(HOSTNAME), _KWOK_DOMAIN, _AWS)
"""Rules for the keys of a NodeClaim's requirements."""
POOL_KEY: Final = _of("self", _KARPENTER, _label(NODE_POOL), _label(HOSTNAME), _KWOK_DOMAIN, _AWS)
"""Rules for the keys of a NodePool's requirements: as CLAIM_KEY, but without the NodePool label."""
OVERLAY_KEY: Final = _of("self", _KARPENTER, _label(HOSTNAME), _AWS_TYPES_ALONE)
"""Rules for the keys of a NodeOverlay's requirements: labels of instance types, not machines."""
POOL_LABELS: Final = tuple(
    SchemaRule(f"self.all(x, {each.expression})", each.message)
    for each in _of("x", _KARPENTER, _label(NODE_POOL), _label(HOSTNAME), _AWS)
)
"""Rules for the labels that a NodePool sets on its nodes."""
