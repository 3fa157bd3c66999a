"""
What teams have written since 2021, as karpenter.sh/v1.

One module a version or source, each a pure function of plain objects. `conversion` holds what all of
them return; nothing outside this package knows a field of an old version.
"""
