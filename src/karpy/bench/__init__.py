"""
LAW: generated workloads, and the measurement of single decisions.

Generators are pure functions of a name and a seed: the same bytes on every machine. The harness
reads a workload file, decides once against the clock, and prints one result line.
Imports core, codec and below; nothing below imports this.
"""
