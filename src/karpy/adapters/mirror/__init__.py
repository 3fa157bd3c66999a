"""Watched objects as one snapshot, updated change by change; only its own tasks write to it."""
