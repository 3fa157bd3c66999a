"""LAW: what an API server refuses of built-in kinds; functions that name faults, in its words."""
