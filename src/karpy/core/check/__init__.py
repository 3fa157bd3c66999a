"""
LAW: an independent judge of plans, simple and slow.

It shares only the model with the solver. It checks the plan of every solver test and benchmark.
"""
