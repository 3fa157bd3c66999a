"""Annotation keys that Karpenter and its users write."""

from typing import Final

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
"""On a pod: `true`, or for how long after its start; on a node: `true` only."""
DO_NOT_REPAIR: Final = "karpenter.sh/do-not-repair"
MIN_VALUES_RELAXED: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
NODE_POOL_HASH: Final = "karpenter.sh/nodepool-hash"
NODE_POOL_HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
TERMINATION_TIME: Final = "karpenter.sh/nodeclaim-termination-timestamp"
"""On a NodeClaim: by when all pods of its node are gone."""
