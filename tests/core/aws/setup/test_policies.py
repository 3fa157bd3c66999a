"""What the operator may do: everything that it does, and nothing more."""

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from karpy.adapters.clouds.aws.calls import AwsCalls, Ec2Calls, IamCalls, OtherCalls
from karpy.core.aws.setup.plan import SetupPlan
from karpy.core.aws.setup.policies import controller_policies, document, irsa_trust

SERVICES: Final = ("ec2", "iam", "eks", "pricing", "ssm", "sqs", "arc-zonal-shift", "sts")
BY_OTHERS: Final = {"iam:PassRole", "iam:TagInstanceProfile"}
"""What other calls need: launches pass the role of nodes, profiles are made with tags."""
FOR_ALL: Final = {"sts:GetCallerIdentity"}
"""What needs no permission."""
POLICY_MAX: Final = 6144
"""Characters of a managed policy, white space aside."""


def statements(plan: SetupPlan) -> Iterator[Mapping[str, Any]]:
    for some in controller_policies(plan).values():
        yield from some


def actions_of_calls() -> set[str]:
    """Return the action of each call of the Protocol, as the models of botocore name it."""
    session = pytest.importorskip("botocore.session").get_session()
    names = pytest.importorskip("botocore").xform_name
    known = {
        names(operation): f"{service}:{operation}"
        for service in reversed(SERVICES)
        for operation in session.get_service_model(service).operation_names
    }
    calls = {
        name
        for protocol in (Ec2Calls, IamCalls, OtherCalls)
        for name, _ in inspect.getmembers(protocol, inspect.iscoroutinefunction)
    }
    assert calls <= {name for name, _ in inspect.getmembers(AwsCalls)}
    return {known[name] for name in calls}


def test_every_call_is_allowed_and_nothing_else() -> None:
    allowed = {
        action for each in statements(SetupPlan(cluster="demo")) for action in each["Action"]
    }

    assert allowed - BY_OTHERS == actions_of_calls() - FOR_ALL
    assert allowed >= BY_OTHERS


def test_a_policy_is_short_enough() -> None:
    plan = SetupPlan(cluster="c" * 100)

    for name, some in controller_policies(plan).items():
        assert len(json.dumps(document(some), separators=(",", ":"))) < POLICY_MAX, name


def test_changes_are_limited_to_what_carries_the_tags_of_the_cluster() -> None:
    for each in statements(SetupPlan(cluster="demo")):
        changes = [
            action
            for action in each["Action"]
            if action.partition(":")[0] in {"ec2", "iam"}
            and not action.partition(":")[2].startswith(("Describe", "Get", "List", "PassRole"))
        ]
        if changes and each["Sid"] != "LaunchWith":
            equals = each["Condition"]["StringEquals"]
            tags = [key for key in equals if key.endswith("kubernetes.io/cluster/demo")]
            assert tags, each["Sid"]
            assert {equals[key] for key in tags} == {"owned"}


def test_names_are_written_on_machines_and_nothing_else_is() -> None:
    naming = next(
        each for each in statements(SetupPlan(cluster="demo")) if each["Sid"] == "NameMachines"
    )

    assert naming["Resource"] == ["arn:{partition}:ec2:{region}:*:instance/*"]
    assert naming["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"] == [
        "eks:eks-cluster-name",
        "karpenter.sh/nodeclaim",
        "Name",
    ]


def test_one_service_account_alone_may_be_the_operator() -> None:
    plan = SetupPlan(cluster="demo", namespace="kube-system", service_account="karpenter")

    trust = irsa_trust(plan, "oidc.eks.eu-west-1.amazonaws.com/id/A1")

    assert trust["Statement"][0]["Condition"]["StringEquals"] == {
        "oidc.eks.eu-west-1.amazonaws.com/id/A1:sub": (
            "system:serviceaccount:kube-system:karpenter"
        ),
        "oidc.eks.eu-west-1.amazonaws.com/id/A1:aud": "sts.amazonaws.com",
    }
