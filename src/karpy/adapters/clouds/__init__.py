"""The port CloudProvider: one package for each cloud."""
