"""
LAW: plain objects to model values and back; the only place that knows JSON names.

Pure: no files, no clock, no logging. Callers pass text or plain objects, and a name for errors.
"""
