"""LAW: draws an overview that `core.overview` has made; drawing decides nothing."""
