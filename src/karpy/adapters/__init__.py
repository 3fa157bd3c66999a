"""LAW: the ports over HTTP and processes; the only place with sockets, and without policy."""
