"""Label keys, their domains, aliases and the names Karpenter reserves for itself."""

from typing import Final

ARCH: Final = "kubernetes.io/arch"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
HOSTNAME: Final = "kubernetes.io/hostname"
INITIALIZED: Final = "karpenter.sh/initialized"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
NODE_POOL: Final = "karpenter.sh/nodepool"
OS: Final = "kubernetes.io/os"
REGION: Final = "topology.kubernetes.io/region"
REGISTERED: Final = "karpenter.sh/registered"
WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"
ZONE: Final = "topology.kubernetes.io/zone"

ON_DEMAND: Final = "on-demand"
RESERVED: Final = "reserved"
SPOT: Final = "spot"
CAPACITY_TYPES: Final = frozenset({ON_DEMAND, RESERVED, SPOT})

WELL_KNOWN: Final = frozenset(
    {NODE_POOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD}
)
"""Keys a pod may ask for although its NodePool does not define them; providers add theirs."""

ALIASES: Final = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}

RESTRICTED_LABELS: Final = frozenset({HOSTNAME})
RESTRICTED_DOMAINS: Final = frozenset({"karpenter.sh"})


def normalise(key: str) -> str:
    """Return the current name of a label that had another one once."""
    return ALIASES.get(key, key)


def is_restricted(key: str, well_known: frozenset[str] = WELL_KNOWN) -> bool:
    """Say whether users may not ask for this key: the hostname, and Karpenter's own domain."""
    if key in well_known:
        return False
    if key in RESTRICTED_LABELS:
        return True
    domain = key.partition("/")[0] if "/" in key else ""
    return any(domain == owner or domain.endswith("." + owner) for owner in RESTRICTED_DOMAINS)
