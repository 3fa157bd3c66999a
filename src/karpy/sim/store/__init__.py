"""
LAW: objects with the semantics of an API server, in memory, on one thread.

Objects are shared, never copied and never changed: a write makes a new one that shares what stayed
the same. Callbacks are called after each commit and write nothing themselves.
"""
