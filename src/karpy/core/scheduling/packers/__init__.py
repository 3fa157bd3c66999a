"""Packers: each chooses the node for a pod."""
