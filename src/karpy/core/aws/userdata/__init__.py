"""What machines are started with, so that they join the cluster: one module an image family."""
