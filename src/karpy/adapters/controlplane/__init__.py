"""A real Kubernetes control plane as processes of this machine: built once, started in seconds."""
