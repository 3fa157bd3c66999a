from msgspec.structs import replace

from karpy.core.disruption.simulation import Relocation, relocate, with_credit
from karpy.model.pods import DAEMON_SET, PodRules
from karpy.model.settings import ReservedMode
from tests.builders import catalog, instance_type, node, offering, owner, pod, pool, snapshot

CLAIM = ("a-claim",)


def test_a_node_without_pods_needs_no_other() -> None:
    cluster = snapshot(
        nodes=[node("a")],
        pods=[
            pod("daemon", on="a", owners=[owner(DAEMON_SET)]),
            pod("done", on="a", phase="Succeeded"),
            pod("waiting", cpu="1"),
        ],
        pools=[pool()],
    )

    assert relocate(cluster, CLAIM) == Relocation()


def test_a_pod_that_cannot_be_read_is_not_waited_for() -> None:
    odd = replace(pod("odd", on="a"), rules=PodRules(unreadable="it is odd"))
    cluster = snapshot(nodes=[node("a"), node("b")], pods=[odd, pod("web", on="a")], pools=[pool()])

    assert relocate(cluster, CLAIM) == Relocation(nodes=("b",))


def test_pods_go_where_there_is_room() -> None:
    cluster = snapshot(
        nodes=[node("a"), node("b")],
        pods=[pod("web", on="a", cpu="1")],
        pools=[pool()],
    )

    assert relocate(cluster, CLAIM) == Relocation(nodes=("b",))


def test_for_pods_without_another_place_nodes_are_launched() -> None:
    cluster = snapshot(
        nodes=[node("a"), node("b", cpu="1")],
        pods=[pod("web", on="a", cpu="3")],
        pools=[pool()],
    )

    relocation = relocate(cluster, CLAIM)

    assert [each.pods for each in relocation.launches] == [("default/web",)]
    assert relocation.homeless == ()


def test_what_others_wait_for_is_no_replacement() -> None:
    cluster = snapshot(
        nodes=[node("a")],
        pods=[pod("web", on="a", cpu="3"), pod("other", cpu="15")],
        pools=[pool()],
    )

    relocation = relocate(cluster, CLAIM)

    assert [each.pods for each in relocation.launches] == [("default/web",)]


def test_pods_that_find_no_place_are_named_with_the_reason() -> None:
    cluster = snapshot(
        nodes=[node("a", cpu="400")], pods=[pod("huge", on="a", cpu="300")], pools=[pool()]
    )

    (homeless,) = relocate(cluster, CLAIM).homeless

    assert homeless.startswith("default/huge: no node has room and no NodePool can make one")


def test_a_node_that_is_not_ready_yet_is_no_place_to_rely_on() -> None:
    cluster = snapshot(
        nodes=[node("a"), node("b", initialized=False)],
        pods=[pod("web", on="a", cpu="1")],
        pools=[pool()],
    )

    assert relocate(cluster, CLAIM).homeless == (
        "default/web: would schedule against uninitialized node b",
    )


def test_the_machine_of_a_node_that_goes_is_free_in_its_reservation() -> None:
    reserved = instance_type("m.xlarge", offerings=[offering(reservation="r1", left=0)])
    types = catalog([reserved], by_pool={"default": [reserved]})
    cluster = snapshot(
        nodes=[node("a")], pods=[pod("web", on="a", cpu="1")], pools=[pool()], catalog=types
    )

    full = relocate(cluster, CLAIM)
    credited = snapshot(
        nodes=[node("a")],
        pods=[pod("web", on="a", cpu="1")],
        pools=[pool()],
        catalog=with_credit(types, "r1"),
    )
    enough = relocate(credited, CLAIM, ReservedMode.STRICT)

    assert len(full.homeless) == 1
    assert enough.homeless == ()
    assert len(enough.launches) == 1
