"""An API server's face for a cluster that is somewhere else: HTTP in front of the port Objects."""
