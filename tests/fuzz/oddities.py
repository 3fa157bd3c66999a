"""Pods that are refused at once, or not considered at all."""

from datetime import timedelta

from msgspec.structs import replace

from karpy.model.constraints import NodeTerm
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, NODE_POOL
from karpy.model.pods import Pod
from karpy.model.requirements import Requirement
from tests.builders import NOON, absent, exists, is_in, pod, term
from tests.fuzz.dice import Dice, Feature
from tests.fuzz.words import TIER


def odd_pods(dice: Dice) -> list[Pod]:
    """Draw a few pods that must not be placed, and similar ones that may be."""
    if Feature.ODD_PODS not in dice.features:
        return []
    twisted = [
        pod("waiting", unschedulable=False),
        pod("preempting", nominated="node-1"),
        pod("undecided", unschedulable=False, nominated="node-1"),
        pod("leaving", deleting=True),
        pod("finished", phase="Succeeded"),
        pod("devices", devices=True),
        pod("opted-out", selector=[absent(NODE_POOL)]),
        pod("opted-out-by-term", terms=[term(absent(NODE_POOL)), term(is_in(NODE_POOL, "a"))]),
        pod("wishes-out", prefers=[(1, term(absent(NODE_POOL)))]),
        pod("contradicts-itself", selector=[is_in(NODE_POOL, "a"), is_in(NODE_POOL, "b")]),
        pod("restricted", selector={HOSTNAME: "node-1"}),
        pod("restricted-late", terms=[term(), term(is_in("karpenter.sh/registered", "true"))]),
        pod("restricted-wish", prefers=[(1, term(is_in(HOSTNAME, "node-1")))]),
        pod("fields", terms=[NodeTerm((), has_match_fields=True)]),
        pod("below-zero", selector=[Requirement(TIER, complement=True, gte=-3)]),
        pod("below-zero-late", terms=[term(), term(Requirement(TIER, complement=True, lte=-2))]),
        pod("claimless", claims=["missing"]),
        pod("one-pool", selector={NODE_POOL: "b"}),
        pod("any-pool", selector=[exists(NODE_POOL), exists(CAPACITY_TYPE)]),
        pod("elsewhere", on="node-that-is-gone"),
    ]
    chosen = dice.some(twisted, 1, 8)
    return [replace(each, created=NOON - timedelta(minutes=dice.number(1, 3))) for each in chosen]
