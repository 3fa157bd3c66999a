"""
LAW: bytes and plain objects to model values and back, pure.

The only place that knows the names Kubernetes writes.
"""
