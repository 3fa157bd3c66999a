"""Packers: who chooses the node for a pod."""
