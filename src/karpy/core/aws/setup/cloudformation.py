"""A template of CloudFormation that sets up an account."""

from typing import Any, Final

import yaml

from karpy.core.aws.setup.plan import (
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

JsonObject = dict[str, Any]
_PLACE: Final = PlaceNotation(
    "${AWS::Partition}", "${AWS::Region}", "${AWS::AccountId}", "${AWS::URLSuffix}"
)
_HEAD: Final = """\
# What Karpy needs for the EKS cluster {cluster}:
#   aws cloudformation deploy --stack-name karpy-{cluster} --template-file FILE \\
#     --capabilities CAPABILITY_NAMED_IAM
# Two things a stack cannot do. Tag the subnets and security groups that nodes are launched with:
#   aws ec2 create-tags --resources SUBNETS GROUPS --tags Key=karpenter.sh/discovery,Value={cluster}
# In a cluster without access entries, leave NodeAccessEntry out and let nodes in by aws-auth:
#   mapRoles: [{{rolearn: arn:aws:iam::ACCOUNT:role/{role},
#     username: "system:node:{{{{EC2PrivateDNSName}}}}",
#     groups: [system:bootstrappers, system:nodes]}}]
"""
_SPOT_ROLE: Final = "CreateSpotServiceLinkedRole"
_WIDTH: Final = 100


def template(plan: SetupPlan) -> JsonObject:
    """Return the template."""
    resources: JsonObject = {
        **_node(plan),
        **_controller(plan),
        **_queue(plan),
        "SpotServiceLinkedRole": {
            "Type": "AWS::IAM::ServiceLinkedRole",
            "Condition": _SPOT_ROLE,
            "Properties": {"AWSServiceName": SPOT_SERVICE},
        },
        **(_endpoints() if plan.is_private else {}),
        **_host(plan),
    }
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"What Karpy needs for the EKS cluster {plan.cluster}",
        "Parameters": _parameters(plan),
        "Conditions": {_SPOT_ROLE: {"Fn::Equals": [{"Ref": _SPOT_ROLE}, "true"]}},
        "Resources": resources,
        "Outputs": {
            "ControllerRoleArn": {"Value": _arn("ControllerRole")},
            "NodeRoleName": {"Value": {"Ref": "NodeRole"}},
            "InterruptionQueue": {"Value": {"Fn::GetAtt": ["InterruptionQueue", "QueueName"]}},
        },
    }


def text(plan: SetupPlan) -> str:
    """Return the template as text."""
    written: str = yaml.dump(template(plan), Dumper=_Dumper, sort_keys=False, width=_WIDTH)
    return _HEAD.format(cluster=plan.cluster, role=plan.role) + written


class _Dumper(yaml.SafeDumper):
    """Writes YAML without anchors, which not all tools for CloudFormation accept."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _parameters(plan: SetupPlan) -> JsonObject:
    parameters: JsonObject = {
        _SPOT_ROLE: {
            "Type": "String",
            "Default": "false",
            "AllowedValues": ["true", "false"],
            "Description": "Whether to create the service-linked role of EC2 Spot, once an account",
        }
    }
    if plan.is_private:
        parameters |= {
            "VpcId": {"Type": "AWS::EC2::VPC::Id"},
            "EndpointSecurityGroupIds": {"Type": "List<AWS::EC2::SecurityGroup::Id>"},
            "RouteTableIds": {"Type": "List<String>"},
        }
    if plan.is_private or plan.host is not OperatorHost.ELSEWHERE:
        parameters["SubnetIds"] = {"Type": "List<AWS::EC2::Subnet::Id>"}
    return parameters


def _node(plan: SetupPlan) -> JsonObject:
    policies = ["arn:{partition}:iam::aws:policy/" + each for each in NODE_POLICIES]
    return {
        "NodeRole": _resource(
            "AWS::IAM::Role",
            RoleName=plan.role,
            AssumeRolePolicyDocument=node_trust(),
            ManagedPolicyArns=policies,
        ),
        "NodeInstanceProfile": _resource(
            "AWS::IAM::InstanceProfile",
            InstanceProfileName=plan.role,
            Roles=[{"Ref": "NodeRole"}],
        ),
        "NodeAccessEntry": _resource(
            "AWS::EKS::AccessEntry",
            ClusterName=plan.cluster,
            PrincipalArn=_arn("NodeRole"),
            Type="EC2_LINUX",
        ),
    }


def _controller(plan: SetupPlan) -> JsonObject:
    policies = controller_policies(plan)
    trust = irsa_trust(plan, plan.oidc) if plan.oidc else pod_identity_trust()
    made = {
        f"{part}Policy": _resource(
            "AWS::IAM::ManagedPolicy",
            ManagedPolicyName=plan.policy_name(part),
            PolicyDocument=document(statements),
        )
        for part, statements in policies.items()
    }
    made["ControllerRole"] = _resource(
        "AWS::IAM::Role",
        RoleName=plan.controller,
        AssumeRolePolicyDocument=trust,
        ManagedPolicyArns=[{"Ref": f"{part}Policy"} for part in policies],
    )
    if not plan.oidc:
        made["ControllerPodIdentity"] = _resource(
            "AWS::EKS::PodIdentityAssociation",
            ClusterName=plan.cluster,
            Namespace=plan.namespace,
            ServiceAccount=plan.service_account,
            RoleArn=_arn("ControllerRole"),
        )
    return made


def _queue(plan: SetupPlan) -> JsonObject:
    arn = _arn("InterruptionQueue")
    rules = {
        f"{name}Rule": _resource(
            "AWS::Events::Rule",
            EventPattern=pattern,
            Targets=[{"Id": "InterruptionQueue", "Arn": arn}],
        )
        for name, pattern in EVENTS.items()
    }
    return {
        "InterruptionQueue": _resource(
            "AWS::SQS::Queue",
            QueueName=plan.queue_name,
            MessageRetentionPeriod=MESSAGE_SECONDS,
            SqsManagedSseEnabled=True,
        ),
        "InterruptionQueuePolicy": _resource(
            "AWS::SQS::QueuePolicy",
            Queues=[{"Ref": "InterruptionQueue"}],
            PolicyDocument=queue_policy(arn),
        ),
        **rules,
    }


def _endpoints() -> JsonObject:
    made = {
        "Endpoint" + "".join(part.title() for part in each.replace("-", ".").split(".")): _resource(
            "AWS::EC2::VPCEndpoint",
            VpcId={"Ref": "VpcId"},
            ServiceName="com.amazonaws.{region}." + each,
            VpcEndpointType="Interface",
            PrivateDnsEnabled=True,
            SubnetIds={"Ref": "SubnetIds"},
            SecurityGroupIds={"Ref": "EndpointSecurityGroupIds"},
        )
        for each in ENDPOINTS
    }
    made["EndpointS3"] = _resource(
        "AWS::EC2::VPCEndpoint",
        VpcId={"Ref": "VpcId"},
        ServiceName="com.amazonaws.{region}.s3",
        VpcEndpointType="Gateway",
        RouteTableIds={"Ref": "RouteTableIds"},
    )
    return made


def _host(plan: SetupPlan) -> JsonObject:
    if plan.host is OperatorHost.NODE_GROUP:
        return {
            "OperatorNodeGroup": _resource(
                "AWS::EKS::Nodegroup",
                ClusterName=plan.cluster,
                NodegroupName=f"{plan.cluster}-karpy",
                NodeRole=_arn("NodeRole"),
                Subnets={"Ref": "SubnetIds"},
                ScalingConfig={"MinSize": 2, "DesiredSize": 2, "MaxSize": 2},
            )
        }
    if plan.host is OperatorHost.ELSEWHERE:
        return {}
    policy = "arn:{partition}:iam::aws:policy/AmazonEKSFargatePodExecutionRolePolicy"
    return {
        "FargateRole": _resource(
            "AWS::IAM::Role",
            AssumeRolePolicyDocument=fargate_trust(),
            ManagedPolicyArns=[policy],
        ),
        "OperatorFargateProfile": _resource(
            "AWS::EKS::FargateProfile",
            ClusterName=plan.cluster,
            FargateProfileName="karpy",
            PodExecutionRoleArn=_arn("FargateRole"),
            Subnets={"Ref": "SubnetIds"},
            Selectors=[{"Namespace": plan.namespace}],
        ),
    }


def _resource(type_: str, **properties: JsonValue) -> JsonObject:
    written = {key: _PLACE.written(value, _sub) for key, value in properties.items()}
    return {"Type": type_, "Properties": written}


def _sub(filled: str) -> JsonObject:
    return {"Fn::Sub": filled}


def _arn(name: str) -> JsonObject:
    return {"Fn::GetAtt": [name, "Arn"]}
