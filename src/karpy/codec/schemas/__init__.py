"""The custom resources as types, and what an API server must know about them, made from these."""
