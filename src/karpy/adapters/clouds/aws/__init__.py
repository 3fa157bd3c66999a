"""AWS: machines of EC2."""
