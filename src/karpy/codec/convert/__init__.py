"""
Manifests of older Karpenter versions and of other tools, converted to karpenter.sh/v1.

Each version or source has a module, with pure functions of plain objects; `manifests` converts all
documents of a call, and `conversion` has the type of the result. No code outside this package knows
a field of an old version.
"""
