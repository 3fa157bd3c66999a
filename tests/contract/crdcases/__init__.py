"""Custom resources that an API server must accept or refuse, as data for any runner."""
