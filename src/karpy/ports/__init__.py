"""LAW: what controllers ask of a cluster, a cloud and a clock; Protocols and values, no code."""
