from syrupy.assertion import SnapshotAssertion

from karpy.cli.launchtext import zone_text
from karpy.cli.nodetable import node_lines
from karpy.cli.plans import headline, plan_lines
from karpy.cli.terminal import Line, width_of
from karpy.model.labels import ZONE
from karpy.model.requirements import Requirement, one_of
from karpy.model.verdicts import (
    Constraint,
    Exclusion,
    Launch,
    LaunchOption,
    Nomination,
    PoolNotice,
    PoolRefusal,
    Reason,
    Refusal,
    Verdict,
)
from tests.builders import catalog, instance_type, offering
from tests.builders import snapshot as cluster

WIDTH = 100
CATALOG = catalog(
    [
        instance_type(
            "m.large", cpu="2", memory="8Gi", offerings=[offering("zone-a", "spot", 0.05)]
        ),
        instance_type("m.xlarge", cpu="4", memory="16Gi", offerings=[offering("zone-a")]),
    ]
)


def launch(name: str, kind: str = "m.large", *zones: str, pods: int = 2) -> Launch:
    options = (
        LaunchOption(kind, 50_000, "zone-a", "spot"),
        LaunchOption("m.xlarge", 1_000_000, "zone-a", "on-demand"),
    )
    return Launch(
        name=name,
        pool="general",
        pods=tuple(f"shop/{name}-{n}" for n in range(pods)),
        requirements={ZONE: one_of(ZONE, *zones)} if zones else {},
        resources={"cpu": 1500, "memory": 2 * 2**30, "pods": pods},
        options=options,
    )


def refusal(
    name: str, reason: Reason = Reason.VOLUME_CLAIM_MISSING, detail: str = "data"
) -> Refusal:
    return Refusal(reason, (f"shop/{name}",), detail)


def shown(lines: list[Line]) -> str:
    return "\n".join("".join(span.text for span in each).rstrip() for each in lines)


def plan(verdict: Verdict, *, details: bool = False) -> str:
    lines = plan_lines(
        cluster(catalog=CATALOG), verdict, width=WIDTH, again="cluster.yaml", details=details
    )
    return shown(lines)


EVERYTHING = Verdict(
    launches=(launch("general-0"), launch("general-1", "m.xlarge", "zone-a", "zone-b", pods=1)),
    nominations=(Nomination("node-1", tuple(f"shop/api-{n}" for n in range(6))),),
    refusals=(
        refusal("db-0"),
        Refusal(
            Reason.NO_HOST,
            ("ml/trainer",),
            pools=(
                PoolRefusal("general", Exclusion(Constraint.RESOURCE, "cpu", 2), True, 2),
                PoolRefusal("data", Exclusion(Constraint.TAINT, "data:NoSchedule", 2), False, 2),
            ),
        ),
    ),
    pools=(PoolNotice("old", Exclusion(Constraint.POOL_NOT_READY, "old", 0)),),
    is_complete=False,
)


def test_a_plan_tells_everything_it_decided(snapshot: SnapshotAssertion) -> None:
    assert plan(EVERYTHING) == snapshot


def test_details_hide_nothing(snapshot: SnapshotAssertion) -> None:
    assert plan(EVERYTHING, details=True) == snapshot


def test_an_empty_verdict_says_that_no_pod_is_pending() -> None:
    assert plan(Verdict()) == "Nothing to do: no pod is pending"


def test_many_refusals_are_counted_and_not_lost(snapshot: SnapshotAssertion) -> None:
    refusals = tuple(refusal(f"db-{n}", detail=f"data-{n}") for n in range(14))

    assert plan(Verdict(refusals=refusals)) == snapshot


def test_hundreds_of_alike_nodes_share_a_row(snapshot: SnapshotAssertion) -> None:
    launches = [launch(f"general-{n}") for n in range(300)]
    launches += [launch(f"big-{n}", "m.xlarge", "zone-a") for n in range(20)]

    lines = node_lines(cluster(catalog=CATALOG), launches, WIDTH)

    assert shown(lines) == snapshot


def test_the_table_stays_within_its_width_and_gives_the_rest_to_bars() -> None:
    narrow = node_lines(cluster(catalog=CATALOG), EVERYTHING.launches, 86)
    wide = node_lines(cluster(catalog=CATALOG), EVERYTHING.launches, 100)

    assert max(width_of(each) for each in narrow) <= 86
    assert "█" not in shown(narrow)
    assert 95 < max(width_of(each) for each in wide) <= 100


def test_a_type_that_is_not_in_the_catalog_has_no_bar() -> None:
    lines = node_lines(cluster(catalog=CATALOG), [launch("general-0", "gone")], WIDTH)

    assert shown(lines).endswith("2  ?    ?")


def test_zones_are_named_if_few_and_counted_if_many() -> None:
    anywhere = {ZONE: Requirement(ZONE, frozenset({"zone-a"}), True)}
    unlike = Launch("a", "general", (), anywhere, {}, ())

    assert zone_text(launch("a")) == "any"
    assert zone_text(launch("a", "m.large", "zone-b", "zone-a")) == "zone-a, zone-b"
    assert zone_text(launch("a", "m.large", "zone-a", "zone-b", "zone-c")) == "3 zones"
    assert zone_text(unlike) == "any"


def test_the_headline_says_if_time_ran_out() -> None:
    assert shown(headline(EVERYTHING)) == (
        "2 new nodes for 3 pods; 6 pods on 1 node that exists; 2 pods stay pending\n"
        "Time ran out; this is what was decided so far."
    )
