"""Simulated kubelets: they join, renew their leases, run the bound pods, and fail on request."""
