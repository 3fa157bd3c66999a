"""Metrics, logs and health checks; nothing here decides anything."""
