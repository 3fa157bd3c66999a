"""Answers of the AWS CLI about groups of machines, with every field."""

from typing import Any, Final

NODE_GROUP: Final[dict[str, Any]] = {
    "nodegroupName": "Batch_gpu",
    "nodegroupArn": "arn:aws:eks:us-east-1:123456789012:nodegroup/shop/Batch_gpu/6f1f",
    "clusterName": "shop",
    "version": "1.34",
    "releaseVersion": "1.34.1-20251112",
    "createdAt": "2025-01-01T00:00:00Z",
    "modifiedAt": "2025-01-02T00:00:00Z",
    "status": "ACTIVE",
    "capacityType": "SPOT",
    "scalingConfig": {"minSize": 2, "maxSize": 10, "desiredSize": 3},
    "instanceTypes": ["g5.xlarge", "g5.2xlarge"],
    "subnets": ["subnet-0a1", "subnet-0b2"],
    "remoteAccess": {"ec2SshKey": "admin"},
    "amiType": "AL2023_x86_64_NVIDIA",
    "nodeRole": "arn:aws:iam::123456789012:role/eks/Nodes",
    "labels": {"tier": "batch", "topology.kubernetes.io/zone": "us-east-1a"},
    "taints": [
        {"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"},
        {"key": "batch", "effect": "PREFER_NO_SCHEDULE"},
        {"key": "old", "effect": "NO_EXECUTE"},
    ],
    "resources": {"autoScalingGroups": [{"name": "eks-batch"}]},
    "diskSize": 100,
    "health": {"issues": []},
    "updateConfig": {"maxUnavailablePercentage": 33, "updateStrategy": "DEFAULT"},
    "nodeRepairConfig": {"enabled": True},
    "launchTemplate": {"name": "batch", "version": "3", "id": "lt-0a1"},
    "tags": {"team": "data", "k8s.io/cluster-autoscaler/enabled": "true"},
    "surprise": 1,
}


def _tag(key: str, value: str) -> dict[str, Any]:
    return {"ResourceId": "web", "Key": key, "Value": value, "PropagateAtLaunch": True}


_HINT: Final = "k8s.io/cluster-autoscaler/node-template"
SCALING_GROUP: Final[dict[str, Any]] = {
    "AutoScalingGroupName": "web",
    "AutoScalingGroupARN": "arn:aws:autoscaling:us-east-1:123456789012:autoScalingGroup:1:web",
    "MixedInstancesPolicy": {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-0a1", "Version": "2"},
            "Overrides": [
                {"InstanceType": "m6i.large", "WeightedCapacity": "1"},
                {"InstanceType": "m6a.large"},
            ],
        },
        "InstancesDistribution": {
            "OnDemandAllocationStrategy": "prioritized",
            "OnDemandBaseCapacity": 1,
            "OnDemandPercentageAboveBaseCapacity": 25,
            "SpotAllocationStrategy": "capacity-optimized",
            "SpotMaxPrice": "0.1",
        },
    },
    "MinSize": 0,
    "MaxSize": 20,
    "DesiredCapacity": 4,
    "DefaultCooldown": 300,
    "AvailabilityZones": ["us-east-1a", "us-east-1b"],
    "LoadBalancerNames": [],
    "TargetGroupARNs": ["arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/web/1"],
    "HealthCheckType": "EC2",
    "HealthCheckGracePeriod": 0,
    "Instances": [{"InstanceId": "i-0a1", "InstanceType": "m6i.large"}],
    "CreatedTime": "2025-01-01T00:00:00Z",
    "SuspendedProcesses": [{"ProcessName": "AZRebalance"}],
    "VPCZoneIdentifier": "subnet-0a1,subnet-0b2",
    "EnabledMetrics": [],
    "Tags": [
        _tag("k8s.io/cluster-autoscaler/enabled", "true"),
        _tag("kubernetes.io/cluster/shop", "owned"),
        _tag(f"{_HINT}/label/tier", "web"),
        _tag(f"{_HINT}/label/node.kubernetes.io/instance-type", "m6i.large"),
        _tag(f"{_HINT}/label/karpenter.sh/nodepool", "web"),
        _tag(f"{_HINT}/taint/web", "yes:NoSchedule"),
        _tag(f"{_HINT}/resources/ephemeral-storage", "100G"),
        _tag(f"{_HINT}/autoscaling-options/scaledownunneededtime", "1m0s"),
        _tag("team", "web"),
    ],
    "TerminationPolicies": ["Default"],
    "NewInstancesProtectedFromScaleIn": False,
    "ServiceLinkedRoleARN": "arn:aws:iam::123456789012:role/aws-service-role/autoscaling",
    "MaxInstanceLifetime": 604800,
    "CapacityRebalance": True,
}
