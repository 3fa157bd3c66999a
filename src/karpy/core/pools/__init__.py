"""The upkeep of NodePools: hash, validation, readiness, usage, cost, fixed numbers of nodes."""
