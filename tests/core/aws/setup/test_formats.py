"""The same set-up in four formats; each is read by the tool it is for."""

import json
import os
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml

from karpy.core.aws.setup import cloudformation, commands, eksctl, terraform
from karpy.core.aws.setup.plan import EVENTS, NODE_POLICIES, OperatorHost, SetupPlan, find_misnomer
from karpy.core.aws.setup.policies import controller_policies
from tests.builders.ec2 import JsonAnything

OIDC: Final = "oidc.eks.eu-west-1.amazonaws.com/id/A1B2"
PLAIN: Final = SetupPlan(cluster="demo")
FULL: Final = SetupPlan(cluster="demo", oidc=OIDC, is_private=True, host=OperatorHost.FARGATE)
GROUP: Final = SetupPlan(cluster="demo", partition="aws-us-gov", host=OperatorHost.NODE_GROUP)
PLANS: Final = [PLAIN, FULL, GROUP]
STUB: Final = """\
#!/bin/sh
for word in "$@"; do printf '%s\\0' "$word" >> "$RECORD"; done
printf '\\n\\0' >> "$RECORD"
echo 111122223333
"""


@pytest.mark.parametrize("plan", PLANS)
def test_cfn_lint_finds_nothing_in_the_template(plan: SetupPlan) -> None:
    api = pytest.importorskip("cfnlint.api")

    assert api.lint(cloudformation.text(plan), regions=["eu-west-1"]) == []


@pytest.mark.filterwarnings("ignore:Tried to parse AWS:UserWarning")
def test_the_stack_makes_roles_policies_queue_and_rules() -> None:
    boto3 = pytest.importorskip("boto3")
    with pytest.importorskip("moto").mock_aws():
        session = boto3.Session("fake", "fake", region_name="eu-west-1")
        session.client("cloudformation").create_stack(
            StackName="karpy", TemplateBody=cloudformation.text(PLAIN)
        )
        iam, sqs, events = (session.client(each) for each in ("iam", "sqs", "events"))
        roles = {each["RoleName"] for each in iam.list_roles()["Roles"]}
        policies = {each["PolicyName"] for each in iam.list_policies(Scope="Local")["Policies"]}
        rules = events.list_rules()["Rules"]
        url = sqs.get_queue_url(QueueName="demo")["QueueUrl"]
        queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        targets = events.list_targets_by_rule(Rule=rules[0]["Name"])["Targets"]

    assert roles == {"KarpenterNodeRole-demo", "KarpyController-demo"}
    assert policies == {PLAIN.policy_name(each) for each in controller_policies(PLAIN)}
    assert len(rules) == len(EVENTS)
    assert targets[0]["Arn"] == queue["QueueArn"]
    assert queue["MessageRetentionPeriod"] == "300"


def test_nodes_have_the_four_managed_policies_and_the_operator_its_own() -> None:
    made = cloudformation.template(PLAIN)["Resources"]

    node = made["NodeRole"]["Properties"]["ManagedPolicyArns"]
    assert [each["Fn::Sub"].rpartition("/")[2] for each in node] == list(NODE_POLICIES)
    own = made["ControllerRole"]["Properties"]["ManagedPolicyArns"]
    assert [each["Ref"] for each in own] == [f"{each}Policy" for each in controller_policies(PLAIN)]


@pytest.mark.parametrize("plan", PLANS)
def test_terraform_can_be_read_and_has_the_same_resources(plan: SetupPlan) -> None:
    read = pytest.importorskip("hcl2").loads(terraform.text(plan))

    kinds = [kind.strip('"') for each in read["resource"] for kind in each]
    assert kinds.count("aws_iam_policy") == len(controller_policies(plan))
    assert kinds.count("aws_cloudwatch_event_rule") == len(EVENTS)
    assert ("aws_eks_pod_identity_association" in kinds) == (not plan.oidc)
    assert ("aws_vpc_endpoint" in kinds) == plan.is_private
    assert ("aws_eks_fargate_profile" in kinds) == (plan.host is OperatorHost.FARGATE)
    assert ("aws_eks_node_group" in kinds) == (plan.host is OperatorHost.NODE_GROUP)


def test_eksctl_lets_nodes_in_and_gives_the_operator_its_policies() -> None:
    config = yaml.safe_load(eksctl.text(PLAIN))

    node = "arn:aws:iam::${AWS_ACCOUNT_ID}:role/KarpenterNodeRole-demo"
    assert config["accessConfig"]["accessEntries"] == [{"principalARN": node, "type": "EC2_LINUX"}]
    assert config["iamIdentityMappings"][0]["username"] == "system:node:{{EC2PrivateDNSName}}"
    association = config["iam"]["podIdentityAssociations"][0]
    assert len(association["permissionPolicyARNs"]) == len(controller_policies(PLAIN))


def ran(plan: SetupPlan, folder: Path) -> list[list[str]]:
    """Run the script with a stand-in for `aws`; return the words of each call."""
    stub, record = folder / "aws", folder / "record"
    stub.write_text(STUB, encoding="utf-8")
    stub.chmod(0o755)
    environ = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "RECORD": str(record),
        "AWS_REGION": "eu-west-1",
    }
    script = commands.text(plan)
    done = subprocess.run(
        ["/bin/sh", "-s"], input=script, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    calls = record.read_text(encoding="utf-8").split("\n\0")
    return [each.split("\0")[:-1] for each in calls if each]


def argument(call: list[str], name: str) -> JsonAnything:
    return json.loads(call[call.index(name) + 1])


def test_the_script_makes_each_policy_as_it_is_meant(tmp_path: Path) -> None:
    calls = ran(PLAIN, tmp_path)

    made = {
        each[each.index("--policy-name") + 1]: argument(each, "--policy-document")["Statement"]
        for each in calls
        if each[:2] == ["iam", "create-policy"]
    }
    assert made.keys() == {PLAIN.policy_name(each) for each in controller_policies(PLAIN)}
    passing = made[PLAIN.policy_name("InstanceProfiles")][0]
    assert passing["Resource"] == ["arn:aws:iam::111122223333:role/KarpenterNodeRole-demo"]
    queue = next(each for each in calls if each[:2] == ["sqs", "create-queue"])
    policy = json.loads(argument(queue, "--attributes")["Policy"])
    assert policy["Statement"][0]["Resource"] == "arn:aws:sqs:eu-west-1:111122223333:demo"


def test_the_script_makes_endpoints_and_a_fargate_profile_on_demand(tmp_path: Path) -> None:
    calls = [" ".join(each[:2]) for each in ran(FULL, tmp_path)]

    assert calls.count("ec2 create-vpc-endpoint") == 9
    assert "eks create-fargate-profile" in calls
    assert "eks create-pod-identity-association" not in calls


def test_partitions_have_their_own_names(tmp_path: Path) -> None:
    calls = ran(SetupPlan(cluster="demo", partition="aws-cn"), tmp_path)

    trust = argument(calls[1], "--assume-role-policy-document")
    assert trust["Statement"][0]["Principal"] == {"Service": "ec2.amazonaws.com.cn"}
    arns = [word for each in calls for word in each if word.startswith("arn:")]
    assert arns
    assert all(each.startswith("arn:aws-cn:") for each in arns)


@pytest.mark.parametrize(
    ("plan", "field"),
    [
        (SetupPlan(cluster="de mo"), "cluster"),
        (SetupPlan(cluster="$(rm)"), "cluster"),
        (SetupPlan(cluster="demo", namespace="Shop"), "namespace"),
        (SetupPlan(cluster="demo", node_role="a/b"), "role"),
        (SetupPlan(cluster="demo", queue="x;y"), "queue_name"),
        (SetupPlan(cluster="demo", oidc="https://x"), "oidc"),
    ],
)
def test_a_name_that_cannot_be_is_found(plan: SetupPlan, field: str) -> None:
    found = find_misnomer(plan)

    assert found is not None
    assert found[0] == field


def test_long_names_of_clusters_leave_names_that_aws_takes() -> None:
    assert find_misnomer(SetupPlan(cluster="c" * 100)) is None
