"""
LAW: made-up clusters and fair stopwatches.

Generators are pure functions of a name and a seed: the same bytes on every machine. The harness
reads a workload file, decides once against the clock, and says what came out as one result line.
Imports core, codec and below; nothing below imports this.
"""
