"""A real API server over HTTP: credentials, calls, watches; nothing is decided here."""
