"""What NodePools say about the disruption of their nodes."""

from typing import Final

from karpy.codec.fields import Fields, read_duration
from karpy.codec.leaving import read_leaving_pod
from karpy.codec.objects import read_budget
from karpy.codec.pods import read_owners
from karpy.model.disruption import Budget, ConsolidationPolicy, DisruptionPolicy
from karpy.model.pods import STATEFUL_SET
from karpy.model.tenants import PodBudget, Tenant

_DEFAULTS: Final = DisruptionPolicy()
_POLICIES: Final = [each.value for each in ConsolidationPolicy]


def read_policy(fields: Fields) -> DisruptionPolicy:
    """Read the disruption policy of a NodePool; what is absent has the API's default."""
    disruption = fields.child("spec").child("disruption")
    consolidate_after = _DEFAULTS.consolidate_after
    if "consolidateAfter" in disruption:
        consolidate_after = read_duration(disruption, "consolidateAfter")
    policy = disruption.choice("consolidationPolicy", _POLICIES, _DEFAULTS.consolidation.value)
    budgets = _DEFAULTS.budgets
    if "budgets" in disruption:
        budgets = tuple(_budget(each) for each in disruption.children("budgets"))
    return DisruptionPolicy(consolidate_after, ConsolidationPolicy(policy), budgets)


def read_tenant(fields: Fields) -> Tenant:
    """Read a pod as disruption weighs it."""
    meta, status = fields.child("metadata"), fields.child("status")
    owners = {(each.api_version, each.kind) for each in read_owners(meta)}
    return Tenant(
        pod=read_leaving_pod(fields),
        labels=meta.labels("labels"),
        annotations=meta.labels("annotations"),
        priority=fields.child("spec").number("priority") or 0,
        is_stateful=STATEFUL_SET in owners,
        is_unready=any(
            each.text("type") == "Ready" and each.text("status") == "False"
            for each in status.children("conditions")
        ),
    )


def read_pod_budget(fields: Fields) -> PodBudget:
    """Read a PodDisruptionBudget and what it says of unhealthy pods."""
    policy = fields.child("spec").text("unhealthyPodEvictionPolicy")
    return PodBudget(read_budget(fields), spares_unready=policy != "AlwaysAllow")


def _budget(fields: Fields) -> Budget:
    return Budget(
        nodes=fields.text("nodes", Budget().nodes),
        reasons=fields.texts("reasons") if "reasons" in fields else None,
        schedule=fields.text("schedule") if "schedule" in fields else None,
        duration=read_duration(fields, "duration"),
    )
