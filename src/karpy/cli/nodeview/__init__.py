"""LAW: draws an overview that `core.overview` has made; whoever draws decides nothing."""
