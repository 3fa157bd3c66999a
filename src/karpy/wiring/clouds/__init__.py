"""The clouds of `karpy run --provider NAME`: a module for each, and their registry."""
