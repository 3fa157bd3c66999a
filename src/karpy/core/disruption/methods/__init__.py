"""The disruption methods, one per module; no method depends on another."""
