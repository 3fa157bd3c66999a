"""
LAW: an independent judge of plans, simple and slow.

Shares nothing with the solver but the model. Every solver test and bench run passes through it.
"""
