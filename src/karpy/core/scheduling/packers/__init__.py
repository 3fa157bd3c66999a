"""Chooses the node for each pod: the packer, its checks, short cuts and other orders."""
