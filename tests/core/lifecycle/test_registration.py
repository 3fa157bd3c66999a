from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes, Count, Remark, joined, listed
from karpy.core.lifecycle.registration import (
    TAINT_REMOVAL_LAG,
    ClaimInputs,
    GatePolicy,
    advance,
    gate,
    is_ready_but_gated,
    register,
    short_gate,
    synced,
    with_gate,
    with_gate_opened,
)
from karpy.model.conditions import Conditions
from karpy.model.constraints import Taint
from karpy.model.records import NodeRecord, OwnerReference
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import DISRUPTED, UNREGISTERED, claim, condition_of, node, texts_of

GPU = Taint("gpu", "NoSchedule", "true")
SHORT_GATE = short_gate(NOON)
STARTUP = Taint("cilium", "NoExecute")
MISSING = (
    "Missing karpenter.sh/unregistered taint which prevents registration related race "
    "conditions on Karpenter-managed nodes"
)
CLAIM_OWNER = OwnerReference("karpenter.sh/v1", "NodeClaim", "web-1", "uid-web-1", True)
NOT_READY = Taint("node.kubernetes.io/not-ready", "NoSchedule")
LONG_AGO = gate(NOON - timedelta(minutes=1))
MINUTE = timedelta(minutes=1)
LABELS = {"karpenter.sh/registered": "true"}
GATED = gate(NOON - MINUTE)


def test_a_claim_waits_for_its_node() -> None:
    changes = register(claim(), (), NOON)

    expected = ("Unknown", "NodeNotFound", "Node not registered with cluster")
    assert condition_of(changes.claim, "Registered") == expected
    assert replace(changes, claim=None) == Changes()


def test_a_claim_without_a_machine_has_no_node() -> None:
    changes = register(claim(provider_id=""), (node(),), NOON)

    assert condition_of(changes.claim, "Registered")[1] == "NodeNotFound"


def test_two_nodes_of_one_machine_do_not_register() -> None:
    changes = register(claim(), (node(), node(name="node-2")), NOON)

    expected = ("False", "MultipleNodesFound", "Invariant violated, matched multiple nodes")
    assert condition_of(changes.claim, "Registered") == expected
    assert condition_of(changes.claim, "Ready")[:2] == ("False", "UnhealthyDependents")


def test_a_registered_node_is_synced_with_its_claim() -> None:
    bare = node(taints=(UNREGISTERED, GPU), labels={"team": "kubelet"}, finalizers=())
    made = claim(
        labels={"team": "shop"},
        annotations={"note": "x"},
        taints=(Taint("gpu", "NoSchedule", "no"), Taint("gpu", "NoExecute")),
        startup_taints=(STARTUP,),
    )

    changes = register(made, (bare,), NOON)

    assert changes.node is not None
    assert changes.node.taints == (GPU, Taint("gpu", "NoExecute"), STARTUP, SHORT_GATE)
    assert changes.node.meta.finalizers == ("karpenter.sh/termination",)
    assert changes.node.meta.owners == (CLAIM_OWNER,)
    assert changes.node.meta.annotations == {"note": "x"}
    assert changes.node.meta.labels == {
        "karpenter.sh/nodepool": "web",
        "karpenter.sh/capacity-type": "spot",
        "karpenter.sh/registered": "true",
        "topology.kubernetes.io/zone": "zone-a",
        "team": "shop",
    }


def test_a_registered_claim_names_its_node_and_is_counted() -> None:
    changes = register(claim(), (node(taints=(UNREGISTERED,)),), NOON)

    assert changes.claim is not None
    assert changes.claim.node_name == "node-1"
    assert condition_of(changes.claim, "Registered") == ("True", "Registered", "")
    assert changes.counts == (Count("nodes_created_total", {"nodepool": "web", "zone": "zone-a"}),)
    assert changes.remarks == (
        Remark(
            "registered nodeclaim",
            {"NodeClaim": "web-1", "provider-id": "kwok://web-1", "Node": "node-1"},
        ),
    )
    assert changes.notices == ()
    assert changes.has_registered is True


def test_a_label_keeps_the_taints_of_the_claim_off_a_node() -> None:
    refusing = node(labels={"karpenter.sh/do-not-sync-taints": "true"}, taints=(UNREGISTERED,))

    changes = register(claim(taints=(GPU,), startup_taints=(STARTUP,)), (refusing,), NOON)

    assert changes.node is not None
    assert changes.node.taints == (SHORT_GATE,)


def test_a_node_without_the_unregistered_taint_registers_with_a_warning() -> None:
    changes = register(claim(), (node(),), NOON)

    assert condition_of(changes.claim, "Registered")[0] == "True"
    assert texts_of(changes.notices) == [
        (
            "NodeClaim",
            "UnregisteredTaintMissing",
            MISSING,
        )
    ]
    assert [each.is_error for each in changes.remarks] == [True, False]


def test_a_node_that_was_registered_before_needs_no_unregistered_taint() -> None:
    changes = register(claim(), (node(labels={"karpenter.sh/registered": "true"}),), NOON)

    assert changes.notices == ()


def test_a_registration_hook_delays_registration() -> None:
    made = claim(labels={"team": "shop"})

    changes = register(made, (node(taints=(UNREGISTERED,)),), NOON, ["tags", "disks"])

    expected = ("Unknown", "RegistrationHookPending", "tags, disks")
    assert condition_of(changes.claim, "Registered") == expected
    assert changes.node is not None
    assert changes.node.taints == (UNREGISTERED,)
    assert changes.node.meta.labels["team"] == "shop"
    assert "karpenter.sh/registered" not in changes.node.meta.labels
    assert changes.has_registered is None


def test_a_decided_condition_only_follows_the_generation() -> None:
    done = claim(said={"Registered": timedelta(minutes=1)})
    newer = replace(done, meta=replace(done.meta, generation=2))

    changes = register(newer, (), NOON)

    assert changes.claim is not None
    condition = changes.claim.conditions.get("Registered")
    assert condition is not None
    assert (condition.status, condition.generation) == ("True", 2)
    assert condition.changed == NOON - timedelta(minutes=1)


@pytest.mark.parametrize(
    "present",
    [
        node(),
        replace(node(), meta=replace(node().meta, owners=(CLAIM_OWNER,))),
    ],
)
def test_existing_metadata_is_not_added_again(present: NodeRecord) -> None:
    made = claim(taints=(GPU,))

    once = synced(present, made)

    assert once.meta.owners == (CLAIM_OWNER,)
    assert synced(once, made) == once


def test_a_deleting_node_gets_no_finalizer() -> None:
    going = node(deleted=timedelta(), finalizers=("other",))

    assert synced(going, claim()).meta.finalizers == ("other",)


def gated(*taints: Taint, is_ready: bool = True) -> NodeRecord:
    return node(taints=(*taints, LONG_AGO), is_ready=is_ready)


def test_the_noexecute_taint_is_replaced_by_a_gate() -> None:
    made = with_gate(node(taints=(UNREGISTERED, GPU)), NOON)
    held = with_gate(node(taints=(UNREGISTERED, GPU, NOT_READY)), NOON, is_held=True)

    assert made.taints == (GPU, SHORT_GATE)
    assert held.taints == (GPU, NOT_READY, gate(NOON))
    assert {each.effect for each in (SHORT_GATE, gate(NOON))} == {"NoSchedule"}


def test_kube_controller_manager_would_remove_the_short_gate() -> None:
    """It removes `node.kubernetes.io/not-ready:NoSchedule`, with any value, from ready nodes."""
    assert (SHORT_GATE.key, SHORT_GATE.effect) == (NOT_READY.key, NOT_READY.effect)
    assert SHORT_GATE != NOT_READY


def test_a_node_that_is_not_ready_needs_no_short_gate() -> None:
    assert with_gate(node(taints=(UNREGISTERED, NOT_READY)), NOON).taints == (NOT_READY,)


def test_the_short_gate_is_not_the_disrupted_taint() -> None:
    """Tools count nodes by the key and effect of that taint."""
    changes = advance(claim(), ClaimInputs((node(taints=(UNREGISTERED,)),)), NOON)

    assert changes.node is not None
    assert DISRUPTED.key not in {each.key for each in changes.node.taints}


def test_karpenter_would_remove_the_gate_as_a_leftover_taint() -> None:
    """It takes `karpenter.sh/disrupted:NoSchedule`, with any value, off nodes that stay."""
    assert (gate(NOON).key, gate(NOON).effect) == (DISRUPTED.key, DISRUPTED.effect)


def test_a_node_that_is_being_disrupted_needs_no_gate() -> None:
    assert with_gate(node(taints=(UNREGISTERED, DISRUPTED)), NOON).taints == (DISRUPTED,)


def test_a_node_without_the_unregistered_taint_gets_no_gate() -> None:
    assert with_gate(node(taints=(GPU,)), NOON).taints == (GPU,)


@pytest.mark.parametrize("stamped", [gate, short_gate])
def test_the_gate_is_removed_after_the_lag_of_kube_controller_manager(
    stamped: Callable[[datetime], Taint],
) -> None:
    made = node(taints=(GPU, stamped(NOON)))

    early = with_gate_opened(made, GatePolicy.FREE, NOON + TAINT_REMOVAL_LAG / 4)
    late = with_gate_opened(made, GatePolicy.FREE, NOON + TAINT_REMOVAL_LAG)

    assert early == (made, TAINT_REMOVAL_LAG * 3 / 4)
    assert (late[0].taints, late[1]) == ((GPU,), timedelta())


@pytest.mark.parametrize("microseconds", [0, 499, 501, 999_999])
def test_a_gate_of_this_moment_stays(microseconds: int) -> None:
    """The gate names the nearest millisecond, which may be ahead."""
    now = NOON + timedelta(microseconds=microseconds)
    made = with_gate(node(taints=(UNREGISTERED,)), now)

    found, left = with_gate_opened(made, GatePolicy.FREE, now)

    assert found == made
    assert left is not None
    assert left > TAINT_REMOVAL_LAG / 2


def test_a_gate_from_the_future_is_removed() -> None:
    made = node(taints=(gate(NOON + timedelta(days=1)),))

    assert with_gate_opened(made, GatePolicy.FREE, NOON) == (node(), timedelta())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("karpenter.sh/unregistered", "1772452740000"),
        ("karpenter.sh/unregistered", "why"),
        ("karpenter.sh/unregistered", ""),
        ("karpenter.sh/disrupted", "1772452740000"),
        ("karpenter.sh/disrupted", "9" * 63),
        ("node.kubernetes.io/not-ready", "1772452740000"),
    ],
)
def test_a_gate_that_was_left_behind_is_removed(key: str, value: str) -> None:
    left = node(taints=(GPU, Taint(key, "NoSchedule", value)))

    assert with_gate_opened(left, GatePolicy.FREE, NOON)[0].taints == (GPU,)


def test_a_node_without_a_gate_is_unchanged() -> None:
    made = node(taints=(NOT_READY,))

    assert with_gate_opened(made, GatePolicy.HELD, NOON) == (made, timedelta())


@pytest.mark.parametrize(
    ("gate_policy", "taints", "left"),
    [
        (GatePolicy.FREE, (GPU, NOT_READY, LONG_AGO), None),
        (GatePolicy.HELD, (GPU, NOT_READY, LONG_AGO), None),
        (GatePolicy.NOMINATED, (GPU,), timedelta()),
    ],
)
def test_only_nominated_pods_open_a_node_before_its_not_ready_taint_is_gone(
    gate_policy: GatePolicy, taints: tuple[Taint, ...], left: timedelta | None
) -> None:
    made, wait = with_gate_opened(gated(GPU, NOT_READY), gate_policy, NOON)

    assert (set(made.taints), wait) == (set(taints), left)


def test_a_held_node_keeps_its_gate() -> None:
    assert with_gate_opened(gated(), GatePolicy.HELD, NOON) == (gated(), None)


def test_a_node_that_is_not_ready_keeps_its_gate_even_with_nominated_pods() -> None:
    made = gated(NOT_READY, is_ready=False)

    assert with_gate_opened(made, GatePolicy.NOMINATED, NOON) == (made, None)


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (gated(), True),
        (gated(NOT_READY), True),
        (gated(is_ready=False), None),
        (node(taints=(UNREGISTERED,)), None),
        (node(taints=(GPU,)), False),
        (gated(Taint("cilium", "NoExecute")), False),
    ],
    ids=["shut", "not seen to be ready", "not ready", "not registered", "open", "not started"],
)
def test_a_node_is_ready_but_gated_if_only_the_gate_keeps_pods_off(
    there: NodeRecord, *, expected: bool | None
) -> None:
    made = claim(startup_taints=(Taint("cilium", "NoExecute"),))

    assert is_ready_but_gated(made, there) is expected


def test_a_claim_without_a_node_waits_until_its_timeout() -> None:
    changes = advance(claim(age=5 * MINUTE), ClaimInputs(), NOON)

    assert condition_of(changes.claim, "Registered")[1] == "NodeNotFound"
    assert condition_of(changes.claim, "Initialized")[1] == "AwaitingReconciliation"
    assert changes.requeue_after == 10 * MINUTE


def test_a_ready_node_registers_and_initializes_in_one_reconcile() -> None:
    changes = advance(claim(), ClaimInputs((node(taints=(GATED,), labels=LABELS),)), NOON)

    assert condition_of(changes.claim, "Ready") == ("True", "Ready", "")
    assert changes.node is not None
    assert changes.node.meta.labels["karpenter.sh/registered"] == "true"
    assert changes.node.meta.labels["karpenter.sh/initialized"] == "true"
    assert [each.event for each in changes.remarks] == [
        "registered nodeclaim",
        "initialized nodeclaim",
    ]
    assert changes.has_registered is True
    assert changes.requeue_after is None


def young(age: float, *taints: Taint, is_ready: bool) -> NodeRecord:
    made = node(taints=(UNREGISTERED, *taints), is_ready=is_ready)
    return replace(made, meta=replace(made.meta, created=NOON - timedelta(seconds=age)))


@pytest.mark.parametrize(
    ("given", "pause"),
    [
        (young(4, NOT_READY, is_ready=False), timedelta(seconds=6)),
        (young(4, NOT_READY, is_ready=True), timedelta(seconds=6)),
        (young(4, is_ready=True), TAINT_REMOVAL_LAG),
    ],
    ids=["boots", "tainted", "gated"],
)
def test_registered_is_written_later_on_a_claim_whose_node_is_ready_soon(
    given: NodeRecord, pause: timedelta
) -> None:
    made = claim()

    changes = advance(made, ClaimInputs((given,)), NOON)

    assert changes.node is not None
    assert changes.node.meta.labels["karpenter.sh/registered"] == "true"
    assert UNREGISTERED not in changes.node.taints
    assert changes.claim == made
    assert (changes.counts, changes.remarks, changes.has_registered) == ((), (), None)
    assert changes.requeue_after == pause


def test_registered_is_written_later_still_if_the_node_is_held() -> None:
    made, late = claim(), young(12, is_ready=True)

    assert advance(made, ClaimInputs((late,), gate_policy=GatePolicy.HELD), NOON).claim == made
    assert advance(made, ClaimInputs((late,)), NOON).claim != made


@pytest.mark.parametrize("said", [{}, {"Registered": MINUTE}], ids=["yet", "said"])
def test_the_gate_of_a_registered_node_is_removed_unless_it_is_held(
    said: dict[str, timedelta],
) -> None:
    made = node(taints=(GATED,), labels=LABELS)

    held = advance(claim(said=said), ClaimInputs((made,), gate_policy=GatePolicy.HELD), NOON)
    free = advance(claim(said=said), ClaimInputs((made,)), NOON)

    assert GATED in (held.node or made).taints
    assert (free.node or made).taints == ()


def test_registered_is_written_on_a_claim_whose_node_is_not_ready_in_time() -> None:
    changes = advance(claim(), ClaimInputs((young(10, is_ready=False),)), NOON)

    assert condition_of(changes.claim, "Registered")[0] == "True"
    assert condition_of(changes.claim, "Initialized")[1] == "NodeNotReady"
    assert changes.has_registered is True


def test_the_first_consistency_check_joins_initialized() -> None:
    changes = advance(claim(), ClaimInputs((node(taints=(GATED,), labels=LABELS),)), NOON)

    assert condition_of(changes.claim, "ConsistentStateFound")[0] == "True"


def test_startup_taints_added_by_registration_delay_initialization() -> None:
    made = claim(startup_taints=(Taint("cilium", "NoExecute"),))

    changes = advance(made, ClaimInputs((node(taints=(UNREGISTERED,)),)), NOON)

    assert condition_of(changes.claim, "Registered")[0] == "True"
    assert condition_of(changes.claim, "Initialized")[1] == "StartupTaintsExist"


def test_a_claim_that_times_out_is_deleted_with_the_reason() -> None:
    changes = advance(claim(age=15 * MINUTE), ClaimInputs(), NOON)

    assert changes.deletes_claim
    assert changes.has_registered is False
    assert condition_of(changes.claim, "Registered")[1] == "NodeNotFound"


def test_a_claim_without_conditions_gets_those_of_its_creation() -> None:
    bare = claim(provider_id="", age=MINUTE)
    bare = replace(bare, conditions=Conditions((), bare.conditions.dependents))

    changes = advance(bare, ClaimInputs(), NOON)

    assert condition_of(changes.claim, "Launched")[1] == "AwaitingReconciliation"
    assert changes.requeue_after == 4 * MINUTE


def test_an_initialized_claim_has_no_changes() -> None:
    said = {"Registered": MINUTE, "Initialized": MINUTE}

    assert advance(claim(said=said), ClaimInputs((node(),)), NOON) == Changes(claim(said=said))


def test_the_changes_of_two_steps_are_joined() -> None:
    first = Changes(claim(), counts=(Count("a"),), requeue_after=2 * MINUTE, has_registered=True)
    then = Changes(node=node(), remarks=(Remark("b"),), requeue_after=MINUTE, deletes_claim=True)

    assert joined(first, then) == Changes(
        claim(),
        node(),
        deletes_claim=True,
        counts=(Count("a"),),
        remarks=(Remark("b"),),
        requeue_after=MINUTE,
        has_registered=True,
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), ""),
        (("a", "b"), "a, b"),
        (tuple("abcde"), "a, b, c, d, e"),
        (tuple("abcdefg"), "a, b, c, d, e and 2 other(s)"),
    ],
)
def test_long_lists_are_cut(names: tuple[str, ...], expected: str) -> None:
    assert listed(names) == expected
