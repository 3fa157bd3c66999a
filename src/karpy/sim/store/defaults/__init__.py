"""LAW: what an API server fills in; functions of an object that share what they leave alone."""
