from collections.abc import Sequence
from typing import Unpack

import pytest

from karpy.core.explain import (
    Explanation,
    Fix,
    PodOutcome,
    PoolGroup,
    PoolNearMiss,
    asks_of,
    explain_pod,
    find_pods,
    fixes_for,
    group_pools,
)
from karpy.model.labels import ARCH, HOSTNAME, ZONE
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, NODE, HostPort, Pod
from karpy.model.verdicts import (
    Constraint,
    Exclusion,
    Launch,
    LaunchOption,
    NearMiss,
    Nomination,
    PoolRefusal,
    Reason,
    Refusal,
    Verdict,
)
from tests.builders import (
    PodFields,
    affinity,
    is_in,
    node,
    owner,
    pod,
    snapshot,
    spread,
    term,
    tolerate,
)

CPU_SHORT = Exclusion(Constraint.RESOURCE, "cpu", 144)


def web(**fields: Unpack[PodFields]) -> Pod:
    fields["namespace"], fields["cpu"], fields["memory"] = "shop", "500m", "0"
    return pod("web", **fields)


def explain(verdict: Verdict, *pods: Pod, nodes: Sequence[Node] = ()) -> Explanation:
    first = pods[0] if pods else web()
    return explain_pod(snapshot(pods=pods or (first,), nodes=nodes), verdict, first.key)


def short_of_cpu(pool: str) -> PoolRefusal:
    return PoolRefusal(pool, CPU_SHORT, True, 144, (CPU_SHORT,), NearMiss("m-256x", ("cpu",)))


def tainted(pool: str, taint: str) -> PoolRefusal:
    why = Exclusion(Constraint.TAINT, taint, 144)
    return PoolRefusal(pool, why, True, 144, (why,))


def test_a_pod_on_a_new_node_is_explained_by_its_launch() -> None:
    launch = Launch(
        "general-0", "general", ("shop/web",), {}, {}, (LaunchOption("c-1x", 19_000, "a", "spot"),)
    )

    explanation = explain(Verdict(launches=(launch,)))

    assert explanation == Explanation(
        pod="shop/web",
        outcome=PodOutcome.NEW_NODE,
        sentence="gets a new node: `general-0` of NodePool `general`",
        asks=("500m cpu",),
        launch=launch,
    )


def test_a_nominated_pod_is_explained_by_its_node() -> None:
    booting = node("n1", initialized=False)
    nomination = Nomination("n1", ("shop/web",))

    explanation = explain(Verdict(nominations=(nomination,)), nodes=[booting])

    assert explanation == Explanation(
        pod="shop/web",
        outcome=PodOutcome.EXISTING_NODE,
        sentence="goes to a node that is on its way: `n1`",
        asks=("500m cpu",),
        nomination=nomination,
        node=booting,
    )


def test_a_refused_pod_is_explained_by_its_merged_pools() -> None:
    also_cpu = Exclusion(Constraint.RESOURCE, "cpu", 100)
    data = PoolRefusal(
        "data",
        Exclusion(Constraint.TAINT, "dedicated=data:NoSchedule", 144),
        False,
        144,
        (Exclusion(Constraint.TAINT, "dedicated=data:NoSchedule", 144), also_cpu),
        NearMiss("m-256x", ("a toleration", "144 cpu")),
    )
    refusal = Refusal(
        Reason.NO_HOST, ("shop/web",), pools=(data, short_of_cpu("big"), short_of_cpu("general"))
    )

    explanation = explain(Verdict(refusals=(refusal,)))

    assert explanation == Explanation(
        pod="shop/web",
        outcome=PodOutcome.REFUSED,
        sentence=f"stays pending: {Reason.NO_HOST.value}",
        asks=("500m cpu",),
        refusal=refusal,
        groups=(
            PoolGroup(Constraint.RESOURCE, ("cpu",), ("big", "general"), 288, 288, True),
            PoolGroup(Constraint.TAINT, ("dedicated=data:NoSchedule",), ("data",), 144, 144, False),
        ),
        exclusions=(
            Exclusion(Constraint.RESOURCE, "cpu", 388),
            Exclusion(Constraint.TAINT, "dedicated=data:NoSchedule", 144),
        ),
        types=432,
        nearest=PoolNearMiss("big", NearMiss("m-256x", ("cpu",))),
        fixes=(
            Fix(
                "lower the pod's cpu request, or allow larger instance types in one of 2 NodePools",
                ("big", "general"),
                Constraint.RESOURCE,
                True,
            ),
            Fix(
                "add a toleration for `dedicated=data:NoSchedule` to the pod,"
                " if it may run on NodePool `data`",
                ("data",),
                Constraint.TAINT,
                False,
            ),
        ),
    )


def test_a_resource_that_no_type_has_is_to_be_dropped() -> None:
    detail = "nvidia.com/gpu: 1 asked, 0 is the most a type leaves"
    why = Exclusion(Constraint.RESOURCE, detail, 9)
    pools = (PoolRefusal("general", why, True, 9, (why,), None),)

    (fix,) = fixes_for(Refusal(Reason.NO_HOST, ("p",), pools=pools))
    assert fix.text.startswith("drop the pod's nvidia.com/gpu request, or give NodePool `general`")


def test_a_full_limit_is_a_smaller_fix_than_a_taint() -> None:
    """A taint was set on purpose; a limit keeps out pods that may run there."""
    full = PoolRefusal("general", Exclusion(Constraint.LIMIT, "cpu: 0 left of 200", 144), True, 144)
    refusal = Refusal(Reason.NO_HOST, ("shop/web",), pools=(tainted("gpu", "gpu:NoSchedule"), full))

    explanation = explain(Verdict(refusals=(refusal,)))

    assert [fix.text for fix in explanation.fixes] == [
        "raise the cpu limit of NodePool `general`",
        "add a toleration for `gpu:NoSchedule` to the pod, if it may run on NodePool `gpu`",
    ]


def test_pools_that_differ_in_detail_are_merged_when_there_are_too_many() -> None:
    pools = [tainted(f"team-{number}", f"team={number}:NoSchedule") for number in range(5)]

    assert len(group_pools(pools, groups_max=5)) == 5
    assert group_pools(pools, groups_max=4) == (
        PoolGroup(
            Constraint.TAINT,
            tuple(f"team={number}:NoSchedule" for number in range(5)),
            tuple(f"team-{number}" for number in range(5)),
            720,
            720,
            True,
        ),
    )


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.name)
def test_every_reason_has_a_way_out(reason: Reason) -> None:
    explanation = explain(Verdict(refusals=(Refusal(reason, ("shop/web",), detail="x"),)))

    assert explanation.is_no
    assert explanation.fixes


@pytest.mark.parametrize("constraint", Constraint, ids=lambda constraint: constraint.name)
def test_every_constraint_has_a_way_out(constraint: Constraint) -> None:
    pool = PoolRefusal("general", Exclusion(constraint, "", 1), True, 1)
    refusal = Refusal(Reason.NO_HOST, ("shop/web",), pools=(pool,))

    explanation = explain(Verdict(refusals=(refusal,)))

    assert explanation.fixes[0].is_enough == (not constraint.name.startswith("POOL_"))


@pytest.mark.parametrize(
    ("candidate", "outcome", "sentence"),
    [
        (web(on="n1"), PodOutcome.RUNNING, "is bound to node `n1` already"),
        (
            web(on="n1", phase="Succeeded"),
            PodOutcome.NOT_CONSIDERED,
            "has ended (Succeeded) and needs no node",
        ),
        (web(deleting=True), PodOutcome.NOT_CONSIDERED, "is being deleted and needs no node"),
        (
            web(owners=[owner(DAEMON_SET)]),
            PodOutcome.NOT_CONSIDERED,
            "belongs to a DaemonSet: it gets no node of its own, new nodes leave room for it",
        ),
        (
            web(owners=[owner(NODE)]),
            PodOutcome.NOT_CONSIDERED,
            "is a static pod of its node and is never scheduled",
        ),
        (web(), PodOutcome.NOT_CONSIDERED, "was not considered in this decision"),
    ],
)
def test_a_pod_without_a_decision_says_why_there_is_none(
    candidate: Pod, outcome: PodOutcome, sentence: str
) -> None:
    explanation = explain(Verdict(), candidate)

    assert (explanation.outcome, explanation.sentence) == (outcome, sentence)


def test_a_bare_name_finds_pods_in_every_namespace() -> None:
    first, second, third = pod("web", namespace="b"), pod("web", namespace="a"), pod("api")
    cluster = snapshot(pods=[first, second, third])

    assert find_pods(cluster, "web") == (second, first)
    assert find_pods(cluster, "b/web") == (first,)
    assert find_pods(cluster, "b/api") == ()


def test_the_constraints_of_a_pod_are_in_the_words_of_its_manifest() -> None:
    picky = pod(
        "web",
        cpu="1",
        memory="1Gi",
        selector={ARCH: "arm64"},
        terms=[term(is_in(ZONE, "a")), term(is_in(ZONE, "b"))],
        spreads=[spread(ZONE, {}), spread(HOSTNAME, {}, max_skew=2, soft=True)],
        prefers=[(80, term(is_in(ARCH, "arm64")))],
        prefers_away=[(1, affinity(ZONE, {}))],
        tolerations=[tolerate("dedicated"), tolerate()],
        affinity=[affinity(ZONE, {})],
        anti_affinity=[affinity(HOSTNAME, {})],
        ports=[HostPort(443)],
        claims=["data-web"],
    )

    assert asks_of(picky) == (
        "1 cpu, 1Gi memory",
        "kubernetes.io/arch In [arm64]",
        "topology.kubernetes.io/zone In [a] or topology.kubernetes.io/zone In [b]",
        "tolerates dedicated",
        "tolerates any taint",
        "needs spread over zone (maxSkew 1)",
        "prefers spread over hostname (maxSkew 2)",
        "near pods in the same zone",
        "away from pods by hostname",
        "prefers away from pods by zone",
        "prefers kubernetes.io/arch In [arm64]",
        "host port 443/TCP",
        "volume data-web",
    )
