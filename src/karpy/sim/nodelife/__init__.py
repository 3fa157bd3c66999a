"""What controllers of a cluster do about nodes in trouble: taints, evictions, collected pods."""
