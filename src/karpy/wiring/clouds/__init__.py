"""The clouds that `karpy run --provider NAME` works with: a module for each, and their registry."""
