"""A Kubernetes control plane as local processes, built once and started in seconds."""
