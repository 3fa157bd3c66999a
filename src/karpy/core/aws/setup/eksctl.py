"""A ClusterConfig of eksctl: the part of the set-up that belongs to the EKS cluster itself."""

from typing import Any, Final

import yaml

from karpy.core.aws.setup.plan import DISCOVERY, OperatorHost, PlaceNotation, SetupPlan
from karpy.core.aws.setup.policies import controller_policies

JsonObject = dict[str, Any]
_HEAD: Final = """\
# The parts of the set-up of Karpy that eksctl makes. Create the stack of
# `karpy aws setup --format cloudformation` before, without --oidc-provider: policies, node role and
# queue are there. Fill in the variables with envsubst, merge this into the configuration of the
# cluster, then run:
#   eksctl create accessentry -f FILE, eksctl create podidentityassociation -f FILE
"""
_PLACE: Final = PlaceNotation("aws", "${AWS_REGION}", "${AWS_ACCOUNT_ID}", "amazonaws.com")


def text(plan: SetupPlan) -> str:
    """Return the configuration as text."""
    written: str = yaml.safe_dump(config(plan), sort_keys=False, width=100)
    return _HEAD + written


def config(plan: SetupPlan) -> JsonObject:
    """Return the configuration."""
    account = f"arn:{plan.partition}:iam::${{AWS_ACCOUNT_ID}}"
    node = f"{account}:role/{plan.role}"
    policies = [f"{account}:policy/{plan.policy_name(each)}" for each in controller_policies(plan)]
    made: JsonObject = {
        "apiVersion": "eksctl.io/v1alpha5",
        "kind": "ClusterConfig",
        "metadata": {
            "name": plan.cluster,
            "region": _PLACE.region,
            "tags": {DISCOVERY: plan.cluster},
        },
        "accessConfig": {
            "authenticationMode": "API_AND_CONFIG_MAP",
            "accessEntries": [{"principalARN": node, "type": "EC2_LINUX"}],
        },
        "iam": _identity(plan, policies),
        "iamIdentityMappings": [identity_mapping(node)],
    }
    if not plan.oidc:
        made["addons"] = [{"name": "eks-pod-identity-agent"}]
    if plan.host is OperatorHost.FARGATE:
        selector = {"namespace": plan.namespace}
        made["fargateProfiles"] = [{"name": "karpy", "selectors": [selector]}]
    elif plan.host is OperatorHost.NODE_GROUP:
        size = {"minSize": 2, "desiredCapacity": 2, "maxSize": 2}
        made["managedNodeGroups"] = [{"name": f"{plan.cluster}-karpy", **size}]
    return made


def identity_mapping(role: str) -> JsonObject:
    """Return the entry for nodes in the ConfigMap aws-auth, for clusters without access entries."""
    return {
        "arn": role,
        "username": "system:node:{{EC2PrivateDNSName}}",
        "groups": ["system:bootstrappers", "system:nodes"],
    }


def _identity(plan: SetupPlan, policies: list[str]) -> JsonObject:
    if plan.oidc:
        account = {
            "metadata": {"name": plan.service_account, "namespace": plan.namespace},
            "roleName": f"{plan.controller}-eksctl",
            "attachPolicyARNs": policies,
            "roleOnly": True,
        }
        return {"withOIDC": True, "serviceAccounts": [account]}
    association = {
        "namespace": plan.namespace,
        "serviceAccountName": plan.service_account,
        "roleName": f"{plan.controller}-eksctl",
        "permissionPolicyARNs": policies,
    }
    return {"podIdentityAssociations": [association]}
