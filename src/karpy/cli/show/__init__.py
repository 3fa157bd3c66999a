"""A cluster that lives for a minute, a story told in it, and a chronicle of what happens."""
