"""
Break a right plan in every way we can think of: the checker must name exactly that rule.

A checker that finds nothing looks the same as a solver without bugs; this is what tells them apart.
"""

from typing import Final

import pytest

from karpy.core.check.breaches import Rule
from karpy.model.constraints import AffinityTerm, NodeTerm, WhenUnsatisfiable
from karpy.model.instances import LAUNCH_OPTIONS_MAX
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, RESERVED, ZONE
from karpy.model.pods import HostPort, PodVolume
from karpy.model.requirement import Operator, one_of, require
from karpy.model.settings import Settings
from karpy.model.storage import Storage
from karpy.model.verdicts import LaunchOption, Nomination
from tests.core.check.builders import (
    MEDIUM,
    RESERVATION,
    SMALL,
    World,
    amounts,
    app,
    catalog,
    daemon,
    even,
    in_zone,
    instance_type,
    near,
    node,
    option,
    pod,
    refusal,
)
from tests.core.check.worlds import (
    ALIEN,
    BIG,
    Breakage,
    both,
    moved,
    right_world,
    with_launch,
    with_pod,
    with_pool,
    with_requirement,
    with_rules,
    with_snapshot,
    with_verdict,
)

RIGHT: Final = right_world()
WEB_0: Final = pod("web-0", labels={"app": "web"})
CHEAP: Final = tuple(instance_type(f"t{number:03}", 5) for number in range(LAUNCH_OPTIONS_MAX))


def added_pod(name: str) -> Breakage:
    pods = (*RIGHT.snapshot.pods, pod(name))
    return with_snapshot(pods=pods)


def named_pod(launch: str, key: str) -> Breakage:
    (found,) = (each for each in RIGHT.verdict.launches if each.name == launch)
    return with_launch(launch, pods=(*found.pods, key))


BREAKAGES: Final = {
    # Decisions.
    "a pod nobody knows": (named_pod("l-a", "shop/ghost"), Rule.UNKNOWN_POD),
    "a running pod placed": (named_pod("l-a", "shop/running"), Rule.NOT_WAITING),
    "a pod placed that waits for something else": (
        with_pod("gpu", is_unschedulable=False),
        Rule.NOT_WAITING,
    ),
    "a pod placed twice": (named_pod("l-b", "shop/web-0"), Rule.DECIDED_TWICE),
    "a pod refused twice": (
        with_verdict(refusals=RIGHT.verdict.refusals * 2),
        Rule.DECIDED_TWICE,
    ),
    "a pod refused and placed": (
        with_verdict(refusals=(*RIGHT.verdict.refusals, refusal(WEB_0))),
        Rule.PLACED_AND_REFUSED,
    ),
    "a refusal left out": (with_verdict(refusals=()), Rule.FORGOTTEN),
    "a pod that was never looked at": (added_pod("late"), Rule.FORGOTTEN),
    "a pod of a going node forgotten": (with_verdict(nominations=()), Rule.FORGOTTEN),
    # Names.
    "a node that is going": (
        with_verdict(nominations=(Nomination("n2", ("shop/moved",)),)),
        Rule.UNKNOWN_NODE,
    ),
    "a node that is gone": (
        with_verdict(nominations=(Nomination("n9", ("shop/moved",)),)),
        Rule.UNKNOWN_NODE,
    ),
    "a pool that is not ready": (with_pool("gpu", is_ready=False), Rule.UNKNOWN_POOL),
    "a pool that is static": (with_pool("web", is_static=True), Rule.UNKNOWN_POOL),
    "two launches of one name": (with_launch("l-g", name="l-a"), Rule.SHARED_NAME),
    "a launch for nobody": (
        both(with_launch("l-g", pods=()), with_verdict_refusing("gpu")),
        Rule.EMPTY_LAUNCH,
    ),
    # Options.
    "no option": (with_launch("l-g", options=()), Rule.NO_OPTION),
    "too many options": (
        both(
            with_snapshot(catalog=catalog(gpu=(*CHEAP, ALIEN), *RIGHT.snapshot.catalog.types)),
            with_launch("l-g", options=(*map(option, CHEAP), option(ALIEN))),
        ),
        Rule.TOO_MANY_OPTIONS,
    ),
    "options out of order": (
        with_launch("l-a", options=(option(BIG), option(MEDIUM))),
        Rule.OPTION_ORDER,
    ),
    "a foreign type": (
        with_launch("l-a", options=(option(MEDIUM), option(BIG), option(ALIEN))),
        Rule.OPTION_ORDER,
    ),
}
