"""A shell script of AWS commands that sets up an account, to read and to run."""

import json
import shlex
from typing import Final

from karpy.core.aws.setup.eksctl import identity_mapping
from karpy.core.aws.setup.plan import (
    DISCOVERY,
    ENDPOINTS,
    EVENTS,
    MESSAGE_SECONDS,
    NODE_POLICIES,
    PARTITIONS,
    SPOT_SERVICE,
    JsonValue,
    OperatorHost,
    PlaceNotation,
    SetupPlan,
)
from karpy.core.aws.setup.policies import (
    controller_policies,
    document,
    fargate_trust,
    irsa_trust,
    node_trust,
    pod_identity_trust,
    queue_policy,
)

_HEAD: Final = """\
#!/bin/sh
# What Karpy needs for the EKS cluster {cluster}. Read it, then run it with AWS_REGION set.
set -eu
: "${{AWS_REGION:?}}"
ACCOUNT=$(aws sts get-caller-identity --query Account --output text)"""


def text(plan: SetupPlan) -> str:
    """Return the script."""
    place = PlaceNotation(plan.partition, "${AWS_REGION}", "${ACCOUNT}", PARTITIONS[plan.partition])
    script = _Script(plan, place)
    parts = [
        _HEAD.format(cluster=plan.cluster),
        *script.node(),
        *script.controller(),
        *script.queue(),
        *script.network(),
        *script.host(),
    ]
    return "\n\n".join(parts) + "\n"


class _Script:
    """Writes commands for a plan."""

    def __init__(self, plan: SetupPlan, place: PlaceNotation) -> None:
        self._plan = plan
        self._place = place
        self._iam = f"arn:{plan.partition}:iam::${{ACCOUNT}}"

    def node(self) -> list[str]:
        """Return the commands that create the role of nodes, and let nodes join the cluster."""
        role, cluster = self._plan.role, self._plan.cluster
        mapping = json.dumps(identity_mapping(f"{self._iam}:role/{role}"))
        return [
            f"aws iam create-role --role-name {role} --assume-role-policy-document "
            + self._json(node_trust()),
            *(
                f"aws iam attach-role-policy --role-name {role} --policy-arn "
                f"arn:{self._plan.partition}:iam::aws:policy/{each}"
                for each in NODE_POLICIES
            ),
            (
                f"aws iam create-instance-profile --instance-profile-name {role}\n"
                f"aws iam add-role-to-instance-profile --instance-profile-name {role} "
                f"--role-name {role}"
            ),
            (
                f"aws eks create-access-entry --cluster-name {cluster} --type EC2_LINUX "
                f'--principal-arn "{self._iam}:role/{role}"\n'
                "# A cluster without access entries takes this in the ConfigMap aws-auth:\n"
                f"# {mapping}"
            ),
        ]

    def controller(self) -> list[str]:
        """Return the commands that create the role of the operator, with its policies."""
        plan = self._plan
        trust = irsa_trust(plan, plan.oidc) if plan.oidc else pod_identity_trust()
        made = [
            f"aws iam create-role --role-name {plan.controller} --assume-role-policy-document "
            + self._json(trust)
        ]
        for part, statements in controller_policies(plan).items():
            name = plan.policy_name(part)
            made.append(
                f"aws iam create-policy --policy-name {name} --policy-document "
                f"{self._json(document(statements))}\n"
                f"aws iam attach-role-policy --role-name {plan.controller} "
                f'--policy-arn "{self._iam}:policy/{name}"'
            )
        if not plan.oidc:
            made.append(
                f"aws eks create-pod-identity-association --cluster-name {plan.cluster} "
                f"--namespace {plan.namespace} --service-account {plan.service_account} "
                f'--role-arn "{self._iam}:role/{plan.controller}"'
            )
        return made

    def queue(self) -> list[str]:
        """Return the commands that create the queue, and the EventBridge rules that feed it."""
        name = self._plan.queue_name
        arn = f"arn:{self._plan.partition}:sqs:${{AWS_REGION}}:${{ACCOUNT}}:{name}"
        # The policy is a JSON text within JSON: its quotes are escaped.
        policy = json.dumps(queue_policy(arn))
        attributes = {
            "MessageRetentionPeriod": str(MESSAGE_SECONDS),
            "SqsManagedSseEnabled": "true",
            "Policy": policy,
        }
        made = [
            f"aws sqs create-queue --queue-name {name} --attributes " + self._json(attributes, None)
        ]
        for rule, pattern in EVENTS.items():
            rule_name = f"{self._plan.cluster}-{rule}"
            made.append(
                f"aws events put-rule --name {rule_name} "
                f"--event-pattern {shlex.quote(json.dumps(pattern))}\n"
                f'aws events put-targets --rule {rule_name} --targets "Id=queue,Arn={arn}"'
            )
        return made

    def network(self) -> list[str]:
        """Return the commands that tag the network, and create endpoints in a private VPC."""
        cluster = self._plan.cluster
        tag = f"Key={DISCOVERY},Value={cluster}"
        vpc = f"aws eks describe-cluster --name {cluster} --output text --query"
        made = [
            (
                "# Once an account; it says so if the role is there already.\n"
                f"aws iam create-service-linked-role --aws-service-name {SPOT_SERVICE} || true"
            ),
            (
                f"SUBNETS=$({vpc} 'cluster.resourcesVpcConfig.subnetIds')\n"
                f"GROUP=$({vpc} 'cluster.resourcesVpcConfig.clusterSecurityGroupId')\n"
                f"aws ec2 create-tags --resources $SUBNETS $GROUP --tags {tag}"
            ),
        ]
        if self._plan.is_private:
            made.append(
                f"VPC=$({vpc} 'cluster.resourcesVpcConfig.vpcId')\n"
                f"for service in {' '.join(ENDPOINTS)}; do\n"
                "  aws ec2 create-vpc-endpoint --vpc-id $VPC --vpc-endpoint-type Interface \\\n"
                "    --service-name com.amazonaws.${AWS_REGION}.$service \\\n"
                "    --subnet-ids $SUBNETS --security-group-ids $GROUP\n"
                "done\n"
                "TABLES=$(aws ec2 describe-route-tables --filters Name=vpc-id,Values=$VPC \\\n"
                "  --query 'RouteTables[].RouteTableId' --output text)\n"
                "aws ec2 create-vpc-endpoint --vpc-id $VPC --route-table-ids $TABLES \\\n"
                "  --service-name com.amazonaws.${AWS_REGION}.s3"
            )
        return made

    def host(self) -> list[str]:
        """Return the commands that create the node group or Fargate profile of the operator."""
        plan = self._plan
        if plan.host is OperatorHost.NODE_GROUP:
            return [
                (
                    f"aws eks create-nodegroup --cluster-name {plan.cluster} "
                    f"--nodegroup-name {plan.cluster}-karpy --subnets $SUBNETS "
                    "--scaling-config minSize=2,desiredSize=2,maxSize=2 "
                    f'--node-role "{self._iam}:role/{plan.role}"'
                )
            ]
        if plan.host is OperatorHost.ELSEWHERE:
            return []
        role = plan.fargate_role
        policy = "AmazonEKSFargatePodExecutionRolePolicy"
        return [
            f"aws iam create-role --role-name {role} --assume-role-policy-document "
            + self._json(fargate_trust()),
            (
                f"aws iam attach-role-policy --role-name {role} "
                f"--policy-arn arn:{plan.partition}:iam::aws:policy/{policy}"
            ),
            (
                f"aws eks create-fargate-profile --cluster-name {plan.cluster} "
                f"--fargate-profile-name karpy --selectors namespace={plan.namespace} "
                f'--subnets $SUBNETS --pod-execution-role-arn "{self._iam}:role/{role}"'
            ),
        ]

    def _json(self, value: JsonValue, indent: int | None = 2) -> str:
        """Write JSON as a here document, in which the shell expands variables."""
        written = json.dumps(self._place.written(value), indent=indent).replace("\\", "\\\\")
        return f'"$(cat <<EOF\n{written}\nEOF\n)"'
