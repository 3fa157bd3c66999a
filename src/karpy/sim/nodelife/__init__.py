"""Controllers for unhealthy nodes: taints, taint-based eviction, pod garbage collection."""
