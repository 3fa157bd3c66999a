"""Disruption: which nodes to disrupt, why not the others, and each step of a command."""
