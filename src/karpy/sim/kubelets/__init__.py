"""Machines that join as nodes, beat, run the pods bound to them, and fail in every known way."""
