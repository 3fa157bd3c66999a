"""Watched objects as one snapshot, kept up change by change; only its own tasks write to it."""
