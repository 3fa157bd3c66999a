"""The HTTP API of Kubernetes in front of the port Objects, for simulated clusters."""
