"""What an API server does to a custom resource before it keeps it: prune, default, validate."""
