"""Keys of labels and annotations, the domains of labels, and names that Karpenter reserves."""

from typing import Final

CAPACITY_OVERLAID: Final = "karpenter.sh/capacity-overlay-applied"
"""On a NodeClaim: `true` if a NodeOverlay added resources to one of its instance types."""
DISRUPTION_COST: Final = "karpenter.sh/disruption-cost"
"""On a pod: the cost of its disruption, an int32."""
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""On a pod: its ReplicaSet deletes pods with a lower cost first; `DISRUPTION_COST` overrides it."""
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
"""On a pod: `true`, or a duration after its start; on a node: `true` only."""
DO_NOT_REPAIR: Final = "karpenter.sh/do-not-repair"
MIN_VALUES_RELAXED: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
REBOOT_BOOT_ID: Final = "karpenter.sh/reboot-pre-boot-id"
"""On a NodeClaim: the boot ID of its node before the reboot."""
REBOOT_GRACE_PERIOD: Final = "karpenter.sh/reboot-termination-grace-period"
"""On a NodeClaim: how long the drain before a reboot may take."""
NODE_POOL_HASH: Final = "karpenter.sh/nodepool-hash"
NODE_POOL_HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
PRICE_OVERLAID: Final = "karpenter.sh/price-overlay-applied"
"""On a NodeClaim: `true` if a NodeOverlay changed the price of one of its instance types."""
TERMINATION_FINALIZER: Final = "karpenter.sh/termination"
"""The finalizer of nodes and NodeClaims; removed once they are drained."""
TERMINATION_TIME: Final = "karpenter.sh/nodeclaim-termination-timestamp"
"""On a NodeClaim: the moment at which its drain ends by force."""


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
LAUNCH_ORDER: Final = (RESERVED, SPOT, ON_DEMAND)
"""The preference among capacity types: a launch takes the first that is on sale."""

WELL_KNOWN: Final = frozenset(
    {NODE_POOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD}
)
"""Keys that a pod may ask for although its NodePool does not define them; providers add some."""

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
    """Return the current key of a label for a deprecated key."""
    return ALIASES.get(key, key)


def is_restricted(key: str, well_known: frozenset[str] = WELL_KNOWN) -> bool:
    """Say whether users may not ask for this key: the hostname, and Karpenter's own domain."""
    if key in well_known:
        return False
    if key in RESTRICTED_LABELS:
        return True
    domain = key.partition("/")[0] if "/" in key else ""
    return any(domain == owner or domain.endswith("." + owner) for owner in RESTRICTED_DOMAINS)
