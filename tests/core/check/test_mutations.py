"""
Break a right plan in every way we can think of: the checker must name exactly that rule.

A checker that finds nothing looks the same as a solver without bugs; this tells them apart.
"""

from typing import Final

import pytest
from msgspec.structs import replace

from karpy.core.check.breaches import Rule
from karpy.core.check.plan import find_risks
from karpy.model.constraints import (
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    NodeTerm,
    Taint,
    WeightedNodeTerm,
    WeightedTerm,
    WhenUnsatisfiable,
)
from karpy.model.instances import LAUNCH_OPTIONS_MAX
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, RESERVED
from karpy.model.pods import HostPort, PodVolume
from karpy.model.requirements import one_of
from karpy.model.settings import Settings
from karpy.model.storage import Storage
from karpy.model.verdicts import LaunchOption, Nomination
from tests.core.check.builders import (
    MEDIUM,
    SMALL,
    amounts,
    daemon,
    even,
    in_zone,
    instance_type,
    near,
    option,
    pod,
    refusal,
)
from tests.core.check.worlds import (
    ALIEN,
    BIG,
    RACK,
    Breakage,
    both,
    moved,
    restated,
    right_world,
    with_launch,
    with_node,
    with_pod,
    with_pool,
    with_requirement,
    with_rules,
    with_snapshot,
    with_verdict,
    without_launch,
    without_requirement,
)

RIGHT: Final = right_world()
CHEAP: Final = tuple(instance_type(f"t{number:03}", 5) for number in range(LAUNCH_OPTIONS_MAX))
SPARE: Final = (PodVolume("disk", "spare"),)
SIDE: Final = {"app": "side"}


def named(launch: str, key: str) -> Breakage:
    """Add a pod to a launch."""
    (found,) = (each for each in RIGHT.verdict.launches if each.name == launch)
    return with_launch(launch, pods=(*found.pods, key))


def nominated(node: str) -> Breakage:
    return with_verdict(nominations=(Nomination(node, ("shop/moved",)),))


def refused(*names: str) -> Breakage:
    """Refuse more pods."""
    more = refusal(*(pod(name) for name in names))
    return with_verdict(refusals=(*RIGHT.verdict.refusals, more))


def asking(name: str, cpu: str) -> Breakage:
    return with_pod(name, requests=amounts(cpu=cpu, memory="1Gi", pods="1"))


def disk_in(zone: str) -> Breakage:
    storage = RIGHT.snapshot.storage
    elsewhere = replace(storage.volumes["pv-data"], terms=(NodeTerm((in_zone(zone),)),))
    volumes = {**storage.volumes, "pv-data": elsewhere}
    return with_snapshot(storage=replace(storage, volumes=volumes))


def sold(*types: object) -> Breakage:
    """Set the instance types of pool gpu."""
    return with_snapshot(catalog=replace(RIGHT.snapshot.catalog, by_pool={"gpu": types}))


DECISIONS: Final = {
    "an unknown pod": (named("l-a", "shop/ghost"), Rule.UNKNOWN_POD),
    "a running daemon placed": (
        both(named("l-a", "shop/log-n1"), restated("l-a")),
        Rule.NOT_WAITING,
    ),
    "a young pod placed": (with_pod("gpu", is_unschedulable=False), Rule.NOT_WAITING),
    "a pod placed twice": (named("l-b", "shop/web-0"), Rule.DECIDED_TWICE),
    "a pod refused twice": (refused("refused"), Rule.DECIDED_TWICE),
    "a pod refused and placed": (refused("web-0"), Rule.PLACED_AND_REFUSED),
    "a refusal left out": (with_verdict(refusals=()), Rule.FORGOTTEN),
    "a pod never looked at": (
        with_snapshot(pods=(*RIGHT.snapshot.pods, pod("late"))),
        Rule.FORGOTTEN,
    ),
    "a pod of a going node forgotten": (with_verdict(nominations=()), Rule.FORGOTTEN),
    "a node that is going": (nominated("n2"), Rule.UNKNOWN_NODE),
    "a node that is gone": (nominated("n9"), Rule.UNKNOWN_NODE),
    "a pool that is not ready": (with_pool("gpu", is_ready=False), Rule.UNKNOWN_POOL),
    "a pool that is gone": (with_launch("l-g", pool="gone"), Rule.UNKNOWN_POOL),
    "two launches of one name": (with_launch("l-g", name="l-r"), Rule.SHARED_NAME),
    "a launch for no pod": (
        both(with_launch("l-g", pods=()), refused("gpu")),
        Rule.EMPTY_LAUNCH,
    ),
}

OPTIONS: Final = {
    "no option": (with_launch("l-g", options=()), Rule.NO_OPTION),
    "too many options": (
        both(
            sold(*CHEAP, ALIEN),
            with_launch("l-g", options=(*(option(each) for each in CHEAP), option(ALIEN))),
        ),
        Rule.TOO_MANY_OPTIONS,
    ),
    "options out of order": (
        with_launch("l-a", options=(option(BIG), option(MEDIUM))),
        Rule.OPTION_ORDER,
    ),
    "an option twice": (with_launch("l-g", options=(option(ALIEN),) * 2), Rule.OPTION_ORDER),
    "a foreign type": (
        with_launch("l-a", options=(option(MEDIUM), option(ALIEN), option(BIG))),
        Rule.OPTION_TYPE,
    ),
    "a type that is sold out": (
        sold(
            replace(
                ALIEN,
                offerings=tuple(replace(each, is_available=False) for each in ALIEN.offerings),
            )
        ),
        Rule.OPTION_TYPE,
    ),
    "a wrong price": (
        with_launch("l-g", options=(LaunchOption("alien", 799, "a", ON_DEMAND),)),
        Rule.OPTION_PRICE,
    ),
    "a price of another zone": (
        with_launch("l-b", options=(option(MEDIUM, "a"), option(BIG, "a"))),
        Rule.OPTION_PRICE,
    ),
    "a cheaper offering overlooked": (
        sold(replace(ALIEN, offerings=(replace(ALIEN.offerings[0], price=1), *ALIEN.offerings))),
        Rule.OPTION_PRICE,
    ),
    "a value the pool does not allow": (
        with_requirement("l-a", one_of("rack", "r1", "r9")),
        Rule.OUTSIDE_POOL,
    ),
    "a key the pool does not define": (
        with_requirement("l-a", one_of("floor", "2")),
        Rule.OUTSIDE_POOL,
    ),
    "a requirement of the pool dropped": (without_requirement("l-a", "rack"), Rule.OUTSIDE_POOL),
    "too little variety": (with_launch("l-a", options=(option(BIG),)), Rule.MIN_VALUES),
    "variety relaxed though that is not allowed": (
        with_launch("l-a", options=(option(BIG),), is_min_values_relaxed=True),
        Rule.MIN_VALUES,
    ),
    "less stated than asked for": (
        with_launch("l-b", resources=amounts(cpu="1", memory="1Gi", pods="1")),
        Rule.STATED_RESOURCES,
    ),
}

TENANCY: Final = {
    "a pod moved to a launch too small for it": (
        both(moved("booked", "l-r", "l-a"), without_launch("l-r")),
        Rule.RESOURCES,
    ),
    "an option too small": (
        both(
            asking("sidecar", "1"),
            restated("l-b"),
            with_launch("l-b", options=tuple(option(each, "b") for each in (SMALL, BIG))),
        ),
        Rule.RESOURCES,
    ),
    "a daemon that needs the room": (
        with_snapshot(daemons=(daemon("log", "3"),)),
        Rule.RESOURCES,
    ),
    "a node with less room": (asking("running", "4"), Rule.RESOURCES),
    "a toleration dropped": (with_rules("gpu", tolerations=()), Rule.TAINT),
    "a node with a taint": (
        with_node("n1", taints=(Taint("gpu", NO_SCHEDULE),)),
        Rule.TAINT,
    ),
    "a label the node will not have": (
        with_rules("web-0", node_selector=(one_of("team", "y"),)),
        Rule.NODE_AFFINITY,
    ),
    "a label left open": (with_requirement("l-c", RACK), Rule.NODE_AFFINITY),
    "a zone no term allows": (
        with_rules("picky", required_node_terms=(NodeTerm((in_zone("b"),)),)),
        Rule.NODE_AFFINITY,
    ),
    "a node in the wrong zone": (
        with_rules("moved", node_selector=(in_zone("b"),)),
        Rule.NODE_AFFINITY,
    ),
    "a port of another pod": (with_rules("db", ports=(HostPort(8080),)), Rule.HOST_PORT),
    "a port of a daemon": (with_rules("sidecar", ports=(HostPort(9100),)), Rule.HOST_PORT),
    "a port of a running pod": (with_rules("moved", ports=(HostPort(443),)), Rule.HOST_PORT),
    "devices": (with_rules("moved", claims_devices=True), Rule.DEVICES),
    "a claim that is missing": (with_snapshot(storage=Storage()), Rule.VOLUME_READY),
    "a volume in another zone": (disk_in("b"), Rule.VOLUME_TOPOLOGY),
    "a pod moved away from its volume": (moved("db", "l-a", "l-c"), Rule.VOLUME_TOPOLOGY),
    "a volume too many for an option": (with_rules("ported", volumes=SPARE), Rule.VOLUME_LIMIT),
    "a volume too many for a node": (with_rules("moved", volumes=SPARE), Rule.VOLUME_LIMIT),
}

TOPOLOGY: Final = {
    "a zone left empty": (moved("web-2", "l-c", "l-b"), Rule.SPREAD),
    "too many on a node": (
        both(
            with_rules("web-0", spreads=(even("web", HOSTNAME),)),
            with_rules("web-2", spreads=(even("web", HOSTNAME),)),
            moved("web-2", "l-c", "l-a"),
        ),
        Rule.SPREAD,
    ),
    "affinity to a pod on another node": (
        both(
            with_rules("sidecar", affinity=(near("cache", HOSTNAME),)),
            moved("sidecar", "l-b", "l-c"),
        ),
        Rule.AFFINITY,
    ),
    "affinity to no pod": (with_rules("sidecar", affinity=(near("nobody"),)), Rule.AFFINITY),
    "a pod for each term but none for all": (
        with_rules("sidecar", affinity=(near("web"), near("cache"))),
        Rule.AFFINITY_TERMS,
    ),
    "anti-affinity on one node": (moved("cache-0", "l-a", "l-b"), Rule.ANTI_AFFINITY),
    "anti-affinity of a bound pod": (
        with_rules("running", anti_affinity=(near("web"),)),
        Rule.ANTI_AFFINITY,
    ),
    "anti-affinity in a possible zone": (
        both(
            with_pool("gpu", requirements=(in_zone("a", "b"),)),
            with_requirement("l-g", in_zone("a", "b")),
            with_rules("gpu", anti_affinity=(near("web"),)),
        ),
        Rule.ANTI_AFFINITY,
    ),
}

LIMITS: Final = {
    "a limit oversold": (with_pool("web", limits=amounts(cpu="47")), Rule.LIMIT),
    "too many nodes": (with_pool("web", limits=amounts(nodes="4")), Rule.LIMIT),
    "a reservation used twice": (with_launch("l-g", reservations=("r-1",)), Rule.RESERVATION),
    "a reservation not insisted on": (
        with_requirement("l-r", one_of(CAPACITY_TYPE, RESERVED, ON_DEMAND)),
        Rule.RESERVATION,
    ),
    "a reservation though they are switched off": (
        with_snapshot(settings=Settings(reserved_capacity=False)),
        Rule.RESERVATION,
    ),
}

BREAKAGES: Final = {**DECISIONS, **OPTIONS, **TENANCY, **TOPOLOGY, **LIMITS}

RISKS: Final = {
    "a group that others may start elsewhere": (
        both(
            with_pod("gpu", labels=SIDE),
            with_pod("sidecar", labels=SIDE),
            with_rules("sidecar", affinity=(near("side"),)),
        ),
        Rule.AFFINITY_START,
    ),
}

HARMLESS: Final = {
    "nothing": both(),
    "an exact limit": with_pool("web", limits=amounts(cpu="48", nodes="5")),
    "a startup taint": with_pool("web", startup_taints=(Taint("boot", NO_SCHEDULE),)),
    "a soft taint": with_pool("web", taints=(Taint("slow", PREFER_NO_SCHEDULE),)),
    "a preferred label": with_rules(
        "web-0", preferred_node_terms=(WeightedNodeTerm(9, NodeTerm((one_of("team", "y"),))),)
    ),
    "a preferred affinity": with_rules(
        "web-0", preferred_affinity=(WeightedTerm(9, near("nobody")),)
    ),
    "a preferred anti-affinity": with_rules(
        "web-0", preferred_anti_affinity=(WeightedTerm(9, near("web")),)
    ),
    "a soft spread": both(
        with_rules(
            "web-2",
            spreads=(even("web", when_unsatisfiable=WhenUnsatisfiable.SCHEDULE_ANYWAY),),
        ),
        with_rules("web-0", spreads=()),
        with_rules("web-1", spreads=()),
        moved("web-2", "l-c", "l-b"),
    ),
    "a port that is free": with_rules("web-0", ports=(HostPort(1),)),
    "a port of another node": with_rules("picky", ports=(HostPort(8080),)),
    "a pod that finished": with_pod("running", phase="Succeeded"),
    "anti-affinity to no pod": with_rules("moved", anti_affinity=(near("nobody"),)),
}


def test_the_plan_is_right() -> None:
    assert RIGHT.breaches() == ()


@pytest.mark.parametrize(("breakage", "expected"), BREAKAGES.values(), ids=BREAKAGES)
def test_a_broken_plan_breaks_this_rule_and_no_other(breakage: Breakage, expected: Rule) -> None:
    assert breakage(RIGHT).rules() == {expected}


@pytest.mark.parametrize(("change", "expected"), RISKS.values(), ids=RISKS)
def test_a_plan_that_depends_on_the_order_is_a_risk(change: Breakage, expected: Rule) -> None:
    assert change(RIGHT).breaches() == ()
    assert {risk.rule for risk in find_risks(*change(RIGHT))} == {expected}


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_a_harmless_change_breaks_nothing(change: Breakage) -> None:
    assert change(RIGHT).breaches() == ()
    assert find_risks(*change(RIGHT)) == ()


def test_every_rule_is_broken_once_at_least() -> None:
    assert {rule for _, rule in [*BREAKAGES.values(), *RISKS.values()]} == set(Rule)
