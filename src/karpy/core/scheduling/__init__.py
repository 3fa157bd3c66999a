"""Decides where pods go: onto existing nodes, or onto which new ones. See ADR 4."""
