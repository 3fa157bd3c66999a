from typing import Final, Unpack

import pytest
from msgspec.structs import replace

from karpy.core.check.breaches import Breach, Rule
from karpy.core.check.spreads import hard_spreads
from karpy.model.constraints import (
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    LabelSelector,
    NodeTerm,
    SpreadConstraint,
    Taint,
    Toleration,
    WhenUnsatisfiable,
)
from karpy.model.instances import InstanceType
from karpy.model.labels import ARCH, HOSTNAME, ZONE
from karpy.model.nodes import Node
from karpy.model.pods import Owner, Pod, PodController, Service
from karpy.model.requirements import Operator, Requirement, one_of, require
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from tests.core.check.builders import (
    LARGE,
    NOON,
    World,
    bound,
    catalog,
    even,
    in_zone,
    instance_type,
    launch,
    node,
    pod,
    pool,
    world,
)
from tests.core.check.fields import CarrierFields, SnapshotFields

WEB: Final = {"app": "web"}
TAINT: Final = Taint("gpu", NO_SCHEDULE)
DEFAULT: Final = SpreadConstraint(ZONE, 1)
DEFAULTS: Final = Settings(default_spreads=(DEFAULT,))
WEB_DEFAULTS: Final = pod("web", labels={"app": "web", "tier": "x"})
SERVICE: Final = Service("web", "shop", {"app": "web"})


def carrier(name: str, **spread: Unpack[CarrierFields]) -> Pod:
    return pod(name, "100m", labels=WEB, spreads=(even("web", **spread),))


def carriers(count: int, **spread: Unpack[CarrierFields]) -> list[Pod]:
    return [carrier(f"web-{number}", **spread) for number in range(count)]


def plan(
    where: dict[str, list[Pod]],
    there: dict[str, list[Pod]] | None = None,
    **others: Unpack[SnapshotFields],
) -> World:
    """Launch one node per zone for some pods, beside nodes (one per zone) with others."""
    old = there or {}
    placed = [each for pods in where.values() for each in pods]
    running = [bound(each, f"n-{zone}") for zone, pods in old.items() for each in pods]
    launches = [launch(f"l-{z}", pods, in_zone(*z), options=[LARGE]) for z, pods in where.items()]
    given: SnapshotFields = {
        "nodes": tuple(node(f"n-{zone}", zone) for zone in old),
        **others,
    }
    return world(*launches, pods=[*placed, *running], **given)


def test_pods_are_spread_over_all_zones_on_offer() -> None:
    """A zone without nodes is an empty domain: a pool could open it."""
    one, two, three, four = carriers(4)

    even_plan = plan({"a": [one, four], "b": [two], "c": [three]})
    lopsided = plan({"a": [one, four], "b": [two, three]})

    assert even_plan.breaches() == ()
    assert lopsided.breaches() == (
        Breach(Rule.SPREAD, "l-a", "shop/web-0", f"{ZONE}: 2 in a, 0 in the emptiest"),
        Breach(Rule.SPREAD, "l-b", "shop/web-1", f"{ZONE}: 2 in b, 0 in the emptiest"),
    )


def test_a_preferred_spread_is_not_required() -> None:
    softly = carriers(2, when_unsatisfiable=WhenUnsatisfiable.SCHEDULE_ANYWAY)

    assert plan({"a": softly}).rules() == set()


def test_running_pods_count() -> None:
    old = [pod("old", labels=WEB)]
    (new,) = carriers(1)

    assert plan({"b": [new]}, {"a": old}).rules() == set()
    assert plan({"a": [new]}, {"a": old}).rules() == {Rule.SPREAD}


def test_selected_pods_without_the_constraint_may_be_bound_later() -> None:
    free = [pod(f"free-{number}", "100m", labels=WEB) for number in range(5)]
    (new,) = carriers(1)

    assert plan({"a": [new, *free]}).rules() == set()


def test_pods_that_are_not_selected_do_not_count() -> None:
    others = [
        pod("other", labels={"app": "db"}, spreads=(even("web"),)),
        pod("another", labels={"app": "db"}, spreads=(even("web"),)),
    ]

    assert plan({"a": others}).rules() == set()


def test_pods_of_other_namespaces_do_not_count() -> None:
    stranger = replace(pod("old", labels=WEB), namespace="elsewhere")

    assert plan({"a": carriers(1)}, {"a": [stranger]}).rules() == set()


def test_terminating_pods_do_not_count() -> None:
    leaving = replace(pod("old", labels=WEB), is_deleting=True)

    assert plan({"a": carriers(1)}, {"a": [leaving]}).rules() == set()


def test_a_larger_skew_allows_more() -> None:
    assert plan({"a": carriers(2, max_skew=2)}).rules() == set()
    assert plan({"a": carriers(3, max_skew=2)}).rules() == {Rule.SPREAD}


def test_a_carrier_counts_in_every_possible_domain() -> None:
    one, two = carriers(2)

    assert plan({"a": [one], "bc": [two]}).rules() == set()
    assert plan({"a": [one], "ab": [two]}).rules() == {Rule.SPREAD}


def test_a_pod_whose_zone_is_open_fills_no_emptiest_domain() -> None:
    one, two, three, four = carriers(4)

    assert plan({"a": [one, two], "b": [three], "c": [four]}).rules() == set()
    assert plan({"a": [one, two], "b": [three], "bc": [four]}).rules() == {Rule.SPREAD}


def test_a_carrier_needs_a_node_with_the_label() -> None:
    (lost,) = carriers(1, key="rack")
    racks = (pool("web", require("rack", Operator.EXISTS)),)
    open_rack = launch("l1", [lost], require("rack", Operator.EXISTS))
    message = "it is not sure to have a label rack"

    assert plan({"a": [lost]}).breaches() == (Breach(Rule.SPREAD, "l-a", "shop/web-0", message),)
    assert world(open_rack, pods=[lost], pools=racks).breaches() == (
        Breach(Rule.SPREAD, "l1", "shop/web-0", message),
    )


def test_with_too_few_domains_the_emptiest_is_empty() -> None:
    one, two, three, four = carriers(4, min_domains=4)

    assert plan({"a": [one], "b": [two], "c": [three]}).rules() == set()
    assert plan({"a": [one, four], "b": [two], "c": [three]}).rules() == {Rule.SPREAD}


def test_launches_that_open_a_domain_may_come_first_if_domains_are_too_few() -> None:
    """The pool offers zones for one unknown term; the zones of the launches are certain."""
    terms = (NodeTerm((in_zone("a"),)), NodeTerm((in_zone("b"),)))
    one, two, three = (
        replace(each, rules=replace(each.rules, required_node_terms=terms))
        for each in carriers(3, min_domains=2)
    )

    assert plan({"a": [one, two], "b": [three]}).rules() == set()
    assert plan({"a": [one, two]}).rules() == {Rule.SPREAD}


def test_each_node_is_a_domain_of_hostnames() -> None:
    one, two = carriers(2, key=HOSTNAME)

    assert plan({"a": [one], "b": [two]}).rules() == set()
    assert plan({"a": [one, two]}).rules() == {Rule.SPREAD}
    assert plan({"a": carriers(2, key=HOSTNAME, max_skew=2)}).rules() == set()


def test_hostnames_count_on_existing_nodes_too() -> None:
    (new,) = carriers(1, key=HOSTNAME)
    old = bound(pod("old", labels=WEB), "n1")
    nodes = (node("n1"), node("n2"))

    def onto(name: str) -> World:
        return world(pods=[new, old], nodes=nodes, nominations={name: [new]})

    assert onto("n2").rules() == set()
    assert onto("n1").rules() == {Rule.SPREAD}


def test_only_domains_within_reach_are_compared() -> None:
    """kube-scheduler leaves out nodes that the pod's own selector excludes."""
    tied = [
        replace(each, rules=replace(each.rules, node_selector=(in_zone("a"),)))
        for each in carriers(2)
    ]

    assert plan({"a": tied}).rules() == set()


def test_all_domains_are_compared_if_the_rule_ignores_affinity() -> None:
    tied = [
        replace(each, rules=replace(each.rules, node_selector=(in_zone("a"),)))
        for each in carriers(2, honors_affinity=False)
    ]

    assert plan({"a": tied}).rules() == {Rule.SPREAD}


def test_a_zone_allowed_by_another_term_counts_once_it_has_a_node() -> None:
    terms = (NodeTerm((in_zone("a"),)), NodeTerm((in_zone("b"),)))
    torn = [
        replace(each, rules=replace(each.rules, required_node_terms=terms)) for each in carriers(2)
    ]

    assert plan({"a": torn}).rules() == set()
    assert plan({"a": torn}, {"b": []}).rules() == {Rule.SPREAD}


@pytest.mark.parametrize(("honors", "expected"), [(True, set()), (False, {Rule.SPREAD})])
def test_tainted_nodes_count_unless_the_rule_honors_taints(
    expected: set[Rule], *, honors: bool
) -> None:
    tainted: tuple[Node, ...] = (node("n-b", "b", taints=(TAINT,)),)
    pools = (pool("web", in_zone("a")),)

    judged = plan({"a": carriers(2, honors_taints=honors)}, {"b": []}, nodes=tainted, pools=pools)

    assert judged.rules() == expected


def test_a_tainted_pool_offers_its_zones_to_pods_that_tolerate_it() -> None:
    pools = (pool("web", in_zone("a")), pool("gpu", in_zone("b"), taints=(TAINT,)))
    shy = carriers(2, honors_taints=True)
    bold = [
        replace(each, rules=replace(each.rules, tolerations=(Toleration(operator="Exists"),)))
        for each in shy
    ]

    assert plan({"a": shy}, pools=pools).rules() == set()
    assert plan({"a": bold}, pools=pools).rules() == {Rule.SPREAD}


def test_a_deleting_node_has_no_domain() -> None:
    pools = (pool("web", in_zone("a")),)
    going = (node("n-b", "b", is_deleting=True),)

    assert plan({"a": carriers(2)}, {"b": []}, nodes=going, pools=pools).rules() == set()


def test_a_pool_without_available_offerings_offers_no_zone() -> None:
    pools = (pool("web", in_zone("a")), pool("moon", in_zone("moon")))

    assert plan({"a": carriers(2)}, pools=pools).rules() == set()


def test_match_label_keys_tell_revisions_apart() -> None:
    old, new = (
        pod(
            revision,
            labels={**WEB, "revision": revision},
            spreads=(even("web", match_label_keys=("revision",)),),
        )
        for revision in ("old", "new")
    )
    again = replace(new, name="again")

    assert plan({"a": [old, new]}).rules() == set()
    assert plan({"a": [again, new]}).rules() == {Rule.SPREAD}


def test_a_constraint_without_selector_counts_no_pods() -> None:
    blind = [
        replace(each, rules=replace(each.rules, spreads=(replace(even("web"), selector=None),)))
        for each in carriers(2)
    ]

    assert plan({"a": blind}).rules() == set()


def test_the_filter_leaves_out_pods_on_nodes_out_of_reach() -> None:
    """The two pods on nodes without the label do not count in zone b."""
    fast = (one_of("speed", "fast"),)
    pools = (pool("web", in_zone("a", "b"), labels={"speed": "fast"}),)
    one, two, three = (
        replace(each, rules=replace(each.rules, node_selector=fast)) for each in carriers(3)
    )
    old = [pod("old", labels=WEB)]

    assert plan({"a": [one], "b": [two, three]}, {"b": old}, pools=pools).rules() == set()
    assert plan({"a": [one, two]}, {"b": old}, pools=pools).rules() == {Rule.SPREAD}


def test_pods_on_a_launch_that_may_not_pass_the_filter_fill_no_emptiest_domain() -> None:
    """The cloud may pick a type of the other architecture, and then they do not count."""
    other = instance_type("arm", 8, requirements={ARCH: one_of(ARCH, "arm64")})
    shop = catalog(LARGE, other)
    pools = (pool("web", in_zone("a", "b")),)
    one, two = (
        replace(each, rules=replace(each.rules, node_selector=(one_of(ARCH, "amd64"),)))
        for each in carriers(2)
    )
    free = pod("free", "100m", labels=WEB)

    def rules(*options: InstanceType) -> set[Rule]:
        planned = launch("l-a", [one, two], in_zone("a"), one_of(ARCH, "amd64"), options=[LARGE])
        beside = launch("l-b", [free], in_zone("b"), options=options)
        return world(planned, beside, pods=[one, two, free], pools=pools, catalog=shop).rules()

    assert rules(LARGE) == set()
    assert rules(other, LARGE) == {Rule.SPREAD}


def test_soft_taints_do_not_matter_to_a_constraint_that_honors_taints() -> None:
    soft = Taint("slow", PREFER_NO_SCHEDULE)
    nodes = (node("n-b", "b", taints=(soft,)),)
    old = {"b": [pod("old", labels=WEB)]}
    pools = (pool("web", in_zone("a", "b")),)

    judged = plan({"b": carriers(1, honors_taints=True)}, old, nodes=nodes, pools=pools)

    assert judged.rules() == {Rule.SPREAD}


def controlled(kind: str, api_version: str = "apps/v1") -> Pod:
    return replace(WEB_DEFAULTS, owners=(Owner(api_version, kind, "c", is_controller=True),))


def controller(kind: str, api_version: str = "apps/v1") -> PodController:
    selector = (one_of("app", "mine"),)
    return PodController(api_version, kind, "c", "shop", "uid", selector)


def deduced(spread_pod: Pod, **snapshot: Unpack[SnapshotFields]) -> tuple[SpreadConstraint, ...]:
    given: SnapshotFields = {"settings": DEFAULTS, **snapshot}
    return hard_spreads(spread_pod, Snapshot(NOON, **given))


def spread(*wanted: Requirement) -> tuple[SpreadConstraint, ...]:
    return (replace(DEFAULT, selector=LabelSelector(wanted)),)


def test_pods_of_a_service_are_spread_by_default() -> None:
    assert deduced(WEB_DEFAULTS, services=(SERVICE,)) == spread(one_of("app", "web"))


def test_without_a_service_or_controller_default_constraints_do_not_apply() -> None:
    strangers = (
        Service("other", "shop", {"app": "other"}),
        Service("far", "elsewhere", {"app": "web"}),
        Service("none", "shop"),
        Service("all", "shop", {}),
    )

    assert deduced(WEB_DEFAULTS) == ()
    assert deduced(WEB_DEFAULTS, services=strangers) == ()
    assert deduced(controlled("ReplicaSet")) == ()


def test_a_pod_with_a_rule_of_its_own_has_no_defaults() -> None:
    own = replace(WEB_DEFAULTS, rules=replace(WEB_DEFAULTS.rules, spreads=(even("own"),)))

    assert deduced(own, services=(SERVICE,)) == (even("own"),)


def test_soft_defaults_are_not_required() -> None:
    soft = replace(DEFAULT, when_unsatisfiable=WhenUnsatisfiable.SCHEDULE_ANYWAY)
    settings = Settings(default_spreads=(soft,))

    assert hard_spreads(WEB_DEFAULTS, Snapshot(NOON, settings=settings, services=(SERVICE,))) == ()


def test_a_replica_set_narrows_what_services_select() -> None:
    both: SnapshotFields = {"services": (SERVICE,), "controllers": (controller("ReplicaSet"),)}

    assert deduced(controlled("ReplicaSet"), **both) == spread(
        one_of("app", "web"), one_of("app", "mine")
    )


def test_a_replication_controller_overrides_what_services_select() -> None:
    both: SnapshotFields = {
        "services": (SERVICE,),
        "controllers": (controller("ReplicationController", "v1"),),
    }

    assert deduced(controlled("ReplicationController", "v1"), **both) == spread(
        one_of("app", "mine")
    )


def test_other_controllers_have_no_selector() -> None:
    assert (
        deduced(controlled("Job", "batch/v1"), controllers=(controller("Job", "batch/v1"),)) == ()
    )


def test_default_constraints_apply_to_a_plan() -> None:
    pods = [WEB_DEFAULTS, replace(WEB_DEFAULTS, name="web-2")]
    planned = launch("l1", pods, in_zone("a"))

    judged = world(planned, pods=pods, services=(SERVICE,), settings=DEFAULTS)

    assert judged.rules() == {Rule.SPREAD}
