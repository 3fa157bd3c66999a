"""How fast Karpy decides, measured in fresh processes; `python -m benchmarks` writes the page."""
