"""A client of API servers over HTTP: credentials, calls and watches, without decisions."""
