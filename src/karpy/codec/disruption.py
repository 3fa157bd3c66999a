"""The disruption policy of NodePools, with its budgets, from plain objects."""

from typing import Final

from karpy.codec.fields import Fields, read_duration
from karpy.model.pools import Budget, ConsolidationPolicy, DisruptionPolicy

_DEFAULTS: Final = DisruptionPolicy()
_POLICIES: Final = [each.value for each in ConsolidationPolicy]


def read_policy(fields: Fields) -> DisruptionPolicy:
    """Read the disruption policy of a NodePool; absent fields have the API's defaults."""
    disruption = fields.child("spec").child("disruption")
    consolidate_after = _DEFAULTS.consolidate_after
    if "consolidateAfter" in disruption:
        consolidate_after = read_duration(disruption, "consolidateAfter")
    policy = disruption.choice("consolidationPolicy", _POLICIES, _DEFAULTS.consolidation.value)
    budgets = _DEFAULTS.budgets
    if "budgets" in disruption:
        budgets = tuple(_budget(each) for each in disruption.children("budgets"))
    return DisruptionPolicy(consolidate_after, ConsolidationPolicy(policy), budgets)


def _budget(fields: Fields) -> Budget:
    return Budget(
        nodes=fields.text("nodes", Budget().nodes),
        reasons=fields.texts("reasons") if "reasons" in fields else None,
        schedule=fields.text("schedule") if "schedule" in fields else None,
        duration=read_duration(fields, "duration"),
    )
