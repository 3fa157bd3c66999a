"""Pending pods in, launches and nominations out."""
