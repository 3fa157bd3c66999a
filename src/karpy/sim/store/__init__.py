"""
LAW: objects with the semantics of an API server, in memory, on one thread.

Objects are immutable: a write makes a new object that shares all unchanged parts with the old one.
Callbacks are called after each commit and must not write.
"""
