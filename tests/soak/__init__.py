"""Many pods that live shortly, and what is still held of them when they are gone."""
