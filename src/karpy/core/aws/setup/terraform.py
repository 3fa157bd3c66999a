"""A configuration of Terraform that sets up an account."""

import json
from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from karpy.core.aws.setup.plan import (
    DISCOVERY,
    ENDPOINTS,
    EVENTS,
    MESSAGE_SECONDS,
    NODE_POLICIES,
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
# What Karpy needs for the EKS cluster {cluster}.
# In a cluster without access entries, map the role {role} in the ConfigMap aws-auth
# to the groups system:bootstrappers and system:nodes instead."""
_PLACE: Final = PlaceNotation(
    "${data.aws_partition.current.partition}",
    "${data.aws_region.current.name}",
    "${data.aws_caller_identity.current.account_id}",
    "${data.aws_partition.current.dns_suffix}",
)


class Expression(Struct, frozen=True):
    """A value that Terraform computes."""

    text: str


class Block(Struct, frozen=True):
    """A block within another one."""

    body: Mapping[str, "Value"]


Value: TypeAlias = JsonValue | Expression | Block
Body: TypeAlias = Mapping[str, Value]


def text(plan: SetupPlan) -> str:
    """Return the configuration as text."""
    parts = [
        _HEAD.format(cluster=plan.cluster, role=plan.role),
        *(_block("data", kind, "current", {}) for kind in _FOUND),
        *_node(plan),
        *_controller(plan),
        *_queue(plan),
        *_network(plan),
        *_host(plan),
    ]
    return "\n\n".join(parts) + "\n"


_FOUND: Final = ("aws_partition", "aws_region", "aws_caller_identity")


def _node(plan: SetupPlan) -> list[str]:
    arns = [_PLACE.written("arn:{partition}:iam::aws:policy/" + each) for each in NODE_POLICIES]
    role = Expression("aws_iam_role.node.name")
    return [
        _resource(
            "aws_iam_role", "node", {"name": plan.role, "assume_role_policy": _json(node_trust())}
        ),
        _resource(
            "aws_iam_role_policy_attachment",
            "node",
            {
                "for_each": Expression(f"toset({json.dumps(arns)})"),
                "role": role,
                "policy_arn": Expression("each.value"),
            },
        ),
        _resource("aws_iam_instance_profile", "node", {"name": plan.role, "role": role}),
        _resource(
            "aws_eks_access_entry",
            "node",
            {
                "cluster_name": plan.cluster,
                "principal_arn": Expression("aws_iam_role.node.arn"),
                "type": "EC2_LINUX",
            },
        ),
    ]


def _controller(plan: SetupPlan) -> list[str]:
    policies = controller_policies(plan)
    trust = irsa_trust(plan, plan.oidc) if plan.oidc else pod_identity_trust()
    made = [
        _resource(
            "aws_iam_role",
            "controller",
            {"name": plan.controller, "assume_role_policy": _json(trust)},
        )
    ]
    for part, statements in policies.items():
        name = _snake(part)
        made += [
            _resource(
                "aws_iam_policy",
                name,
                {"name": plan.policy_name(part), "policy": _json(document(statements))},
            ),
            _resource(
                "aws_iam_role_policy_attachment",
                name,
                {
                    "role": Expression("aws_iam_role.controller.name"),
                    "policy_arn": Expression(f"aws_iam_policy.{name}.arn"),
                },
            ),
        ]
    if not plan.oidc:
        made.append(
            _resource(
                "aws_eks_pod_identity_association",
                "controller",
                {
                    "cluster_name": plan.cluster,
                    "namespace": plan.namespace,
                    "service_account": plan.service_account,
                    "role_arn": Expression("aws_iam_role.controller.arn"),
                },
            )
        )
    return made


def _queue(plan: SetupPlan) -> list[str]:
    arn = "${aws_sqs_queue.interruption.arn}"
    made = [
        _resource(
            "aws_sqs_queue",
            "interruption",
            {
                "name": plan.queue_name,
                "message_retention_seconds": MESSAGE_SECONDS,
                "sqs_managed_sse_enabled": True,
            },
        ),
        _resource(
            "aws_sqs_queue_policy",
            "interruption",
            {
                "queue_url": Expression("aws_sqs_queue.interruption.id"),
                "policy": _json(queue_policy(arn)),
            },
        ),
    ]
    for name, pattern in EVENTS.items():
        rule = _snake(name)
        made += [
            _resource(
                "aws_cloudwatch_event_rule",
                rule,
                {
                    "name": f"{plan.cluster}-{rule}".replace("_", "-"),
                    "event_pattern": _json(pattern),
                },
            ),
            _resource(
                "aws_cloudwatch_event_target",
                rule,
                {
                    "rule": Expression(f"aws_cloudwatch_event_rule.{rule}.name"),
                    "arn": Expression("aws_sqs_queue.interruption.arn"),
                },
            ),
        ]
    return made


def _network(plan: SetupPlan) -> list[str]:
    made = [
        _variable("subnet_ids", "list(string)", "The subnets that nodes are launched in."),
        _variable("security_group_ids", "list(string)", "The security groups of nodes."),
        _variable("create_spot_role", "bool", "Whether the account lacks the role of EC2 Spot."),
        _tagged("subnet_ids", plan.cluster),
        _tagged("security_group_ids", plan.cluster),
        _resource(
            "aws_iam_service_linked_role",
            "spot",
            {
                "count": Expression("var.create_spot_role ? 1 : 0"),
                "aws_service_name": SPOT_SERVICE,
            },
        ),
    ]
    if plan.is_private:
        service = "com.amazonaws.${data.aws_region.current.name}."
        made += [
            _variable("vpc_id", "string", "The VPC without a way out."),
            _variable("route_table_ids", "list(string)", "The route tables of its subnets."),
            _resource(
                "aws_vpc_endpoint",
                "interface",
                {
                    "for_each": Expression(f"toset({json.dumps(list(ENDPOINTS))})"),
                    "vpc_id": Expression("var.vpc_id"),
                    "service_name": service + "${each.value}",
                    "vpc_endpoint_type": "Interface",
                    "private_dns_enabled": True,
                    "subnet_ids": Expression("var.subnet_ids"),
                    "security_group_ids": Expression("var.security_group_ids"),
                },
            ),
            _resource(
                "aws_vpc_endpoint",
                "s3",
                {
                    "vpc_id": Expression("var.vpc_id"),
                    "service_name": service + "s3",
                    "route_table_ids": Expression("var.route_table_ids"),
                },
            ),
        ]
    return made


def _host(plan: SetupPlan) -> list[str]:
    if plan.host is OperatorHost.NODE_GROUP:
        group: Body = {
            "cluster_name": plan.cluster,
            "node_group_name": f"{plan.cluster}-karpy",
            "node_role_arn": Expression("aws_iam_role.node.arn"),
            "subnet_ids": Expression("var.subnet_ids"),
            "scaling_config": Block({"min_size": 2, "desired_size": 2, "max_size": 2}),
        }
        return [_resource("aws_eks_node_group", "operator", group)]
    if plan.host is OperatorHost.ELSEWHERE:
        return []
    policy = "arn:{partition}:iam::aws:policy/AmazonEKSFargatePodExecutionRolePolicy"
    return [
        _resource(
            "aws_iam_role",
            "fargate",
            {"name": plan.fargate_role, "assume_role_policy": _json(fargate_trust())},
        ),
        _resource(
            "aws_iam_role_policy_attachment",
            "fargate",
            {
                "role": Expression("aws_iam_role.fargate.name"),
                "policy_arn": _PLACE.written(policy),
            },
        ),
        _resource(
            "aws_eks_fargate_profile",
            "operator",
            {
                "cluster_name": plan.cluster,
                "fargate_profile_name": "karpy",
                "pod_execution_role_arn": Expression("aws_iam_role.fargate.arn"),
                "subnet_ids": Expression("var.subnet_ids"),
                "selector": Block({"namespace": plan.namespace}),
            },
        ),
    ]


def _tagged(variable: str, cluster: str) -> str:
    body: Body = {
        "for_each": Expression(f"toset(var.{variable})"),
        "resource_id": Expression("each.value"),
        "key": DISCOVERY,
        "value": cluster,
    }
    return _resource("aws_ec2_tag", variable.removesuffix("_ids"), body)


def _variable(name: str, type_: str, description: str) -> str:
    body = _lines({"type": Expression(type_), "description": description}, 1)
    return f'variable "{name}" {{\n{body}}}'


def _resource(kind: str, name: str, body: Body) -> str:
    return _block("resource", kind, name, body)


def _block(word: str, kind: str, name: str, body: Body) -> str:
    return f'{word} "{kind}" "{name}" {{\n{_lines(body, 1)}}}'


def _lines(body: Body, depth: int) -> str:
    indent = "  " * depth
    text = ""
    for key, value in body.items():
        match value:
            case Block(inner):
                text += f"{indent}{key} {{\n{_lines(inner, depth + 1)}{indent}}}\n"
            case Expression(written):
                text += f"{indent}{key} = {written}\n"
            case _:
                text += f"{indent}{key} = {json.dumps(value)}\n"
    return text


def _json(value: JsonValue) -> Expression:
    """Return a call of `jsonencode`, in which Terraform fills in its values."""
    written = json.dumps(_PLACE.written(value), indent=2).replace("\n", "\n  ")
    return Expression(f"jsonencode({written})")


def _snake(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")
