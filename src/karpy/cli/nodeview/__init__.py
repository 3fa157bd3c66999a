"""LAW: shows the overview that `core.overview` has made, without decisions of its own."""
