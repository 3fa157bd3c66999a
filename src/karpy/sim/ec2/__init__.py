"""EC2 in memory, and kubelets for its machines, which join as their user data says."""
