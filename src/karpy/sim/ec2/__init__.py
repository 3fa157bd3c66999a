"""EC2 in memory, and kubelets for its machines: they join by the user data they were given."""
