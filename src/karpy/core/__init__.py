"""
LAW: decisions, pure.

Functions take frozen values and return a verdict: what to do, and a refusal for everything
considered and left alone. No I/O, clock, randomness, logging or async; the time is `snapshot.now`.
"""
