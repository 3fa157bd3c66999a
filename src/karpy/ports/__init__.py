"""LAW: the interfaces through which controllers reach cluster, cloud and clock; no code."""
