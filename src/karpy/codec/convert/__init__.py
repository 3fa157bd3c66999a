"""
What teams have written since 2021, as karpenter.sh/v1.

One module a version or source, each a pure function of plain objects; `manifests` sees all
documents of a call. `conversion` holds what it returns; nothing outside this package knows a field
of an old version.
"""
