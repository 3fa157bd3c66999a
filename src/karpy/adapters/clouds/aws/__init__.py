"""EC2 as a cloud."""
