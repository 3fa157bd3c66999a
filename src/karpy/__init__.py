"""Karpy: a Kubernetes node autoscaler that explains itself."""

__version__ = "0.1.0"
