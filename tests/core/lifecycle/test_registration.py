from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.opening import gate
from karpy.core.lifecycle.outcomes import Count, Outcome, Remark
from karpy.core.lifecycle.registration import register, synced
from karpy.model.constraints import Taint
from karpy.model.records import NodeRecord, Owner
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import UNREGISTERED, claim, condition_of, node, told

GPU = Taint("gpu", "NoSchedule", "true")
GATE = gate(NOON)
STARTUP = Taint("cilium", "NoExecute")
MISSING = (
    "Missing karpenter.sh/unregistered taint which prevents registration related race "
    "conditions on Karpenter-managed nodes"
)
CLAIM_OWNER = Owner("karpenter.sh/v1", "NodeClaim", "web-1", "uid-web-1", True)


def test_a_claim_waits_for_its_node() -> None:
    outcome = register(claim(), (), NOON)

    expected = ("Unknown", "NodeNotFound", "Node not registered with cluster")
    assert condition_of(outcome.claim, "Registered") == expected
    assert replace(outcome, claim=None) == Outcome()


def test_a_claim_without_a_machine_has_no_node() -> None:
    outcome = register(claim(provider_id=""), (node(),), NOON)

    assert condition_of(outcome.claim, "Registered")[1] == "NodeNotFound"


def test_two_nodes_of_one_machine_are_none() -> None:
    outcome = register(claim(), (node(), node(name="node-2")), NOON)

    expected = ("False", "MultipleNodesFound", "Invariant violated, matched multiple nodes")
    assert condition_of(outcome.claim, "Registered") == expected
    assert condition_of(outcome.claim, "Ready")[:2] == ("False", "UnhealthyDependents")


def test_a_node_becomes_the_claims() -> None:
    bare = node(taints=(UNREGISTERED, GPU), labels={"team": "kubelet"}, finalizers=())
    made = claim(
        labels={"team": "shop"},
        annotations={"note": "x"},
        taints=(Taint("gpu", "NoSchedule", "no"), Taint("gpu", "NoExecute")),
        startup_taints=(STARTUP,),
    )

    outcome = register(made, (bare,), NOON)

    assert outcome.node is not None
    assert outcome.node.taints == (GPU, Taint("gpu", "NoExecute"), STARTUP, GATE)
    assert outcome.node.meta.finalizers == ("karpenter.sh/termination",)
    assert outcome.node.meta.owners == (CLAIM_OWNER,)
    assert outcome.node.meta.annotations == {"note": "x"}
    assert outcome.node.meta.labels == {
        "karpenter.sh/nodepool": "web",
        "karpenter.sh/capacity-type": "spot",
        "karpenter.sh/registered": "true",
        "topology.kubernetes.io/zone": "zone-a",
        "team": "shop",
    }


def test_a_registered_claim_knows_its_node_and_is_counted() -> None:
    outcome = register(claim(), (node(taints=(UNREGISTERED,)),), NOON)

    assert outcome.claim is not None
    assert outcome.claim.node_name == "node-1"
    assert condition_of(outcome.claim, "Registered") == ("True", "Registered", "")
    assert outcome.counts == (Count("nodes_created_total", {"nodepool": "web", "zone": "zone-a"}),)
    assert outcome.remarks == (
        Remark("registered nodeclaim", {"provider-id": "kwok://web-1", "Node": "node-1"}),
    )
    assert outcome.notices == ()
    assert outcome.has_registered is True


def test_a_node_may_refuse_the_taints_of_its_claim() -> None:
    refusing = node(labels={"karpenter.sh/do-not-sync-taints": "true"}, taints=(UNREGISTERED,))

    outcome = register(claim(taints=(GPU,), startup_taints=(STARTUP,)), (refusing,), NOON)

    assert outcome.node is not None
    assert outcome.node.taints == (GATE,)


def test_a_node_without_the_first_taint_registers_and_is_told_of() -> None:
    outcome = register(claim(), (node(),), NOON)

    assert condition_of(outcome.claim, "Registered")[0] == "True"
    assert told(outcome.notices) == [
        (
            "NodeClaim",
            "UnregisteredTaintMissing",
            MISSING,
        )
    ]
    assert [each.is_error for each in outcome.remarks] == [True, False]


def test_a_node_that_was_registered_before_needs_no_taint() -> None:
    outcome = register(claim(), (node(labels={"karpenter.sh/registered": "true"}),), NOON)

    assert outcome.notices == ()


def test_a_provider_may_hold_up_registration() -> None:
    made = claim(labels={"team": "shop"})

    outcome = register(made, (node(taints=(UNREGISTERED,)),), NOON, ["tags", "disks"])

    expected = ("Unknown", "RegistrationHookPending", "tags, disks")
    assert condition_of(outcome.claim, "Registered") == expected
    assert outcome.node is not None
    assert outcome.node.taints == (UNREGISTERED,)
    assert outcome.node.meta.labels["team"] == "shop"
    assert "karpenter.sh/registered" not in outcome.node.meta.labels
    assert outcome.has_registered is None


def test_what_is_decided_only_follows_the_generation() -> None:
    done = claim(said={"Registered": timedelta(minutes=1)})
    newer = replace(done, meta=replace(done.meta, generation=2))

    outcome = register(newer, (), NOON)

    assert outcome.claim is not None
    condition = outcome.claim.conditions.get("Registered")
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
def test_what_a_node_has_already_is_not_added_again(present: NodeRecord) -> None:
    made = claim(taints=(GPU,))

    once = synced(present, made)

    assert once.meta.owners == (CLAIM_OWNER,)
    assert synced(once, made) == once


def test_a_node_that_is_going_takes_no_finalizer() -> None:
    going = node(deleted=timedelta(), finalizers=("other",))

    assert synced(going, claim()).meta.finalizers == ("other",)
