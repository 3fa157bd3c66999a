"""
LAW: frozen values and their algebra.

Nothing here knows JSON names, clocks, sockets or policy. Imports msgspec and `karpy.errors` only.
"""
