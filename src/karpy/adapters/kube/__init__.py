"""A real API server over HTTP: who we are, what we ask, what it tells; nothing is decided here."""
