"""Amazon Linux 2023: a NodeConfig for nodeadm, the last of all parts."""

from collections.abc import Mapping
from typing import Any, Final

import yaml

from karpy.core.aws.userdata.bootstrap import RAID0, Bootstrap, kubelet_flags
from karpy.core.aws.userdata.mime import (
    NODE_CONFIG,
    SHELL,
    Part,
    is_mime,
    read_parts,
    write_parts,
)
from karpy.model.ec2nodeclass import Kubelet
from karpy.model.times import write_duration

_COMMENT: Final = "# Karpenter Generated NodeConfig\n"
_LENGTH_MAX: Final = 16384


def user_data(bootstrap: Bootstrap) -> str:
    """Return the user's parts, then a NodeConfig: of several the last one wins."""
    return write_parts([*_own_parts(bootstrap.user_data), Part(NODE_CONFIG, _config(bootstrap))])


def _own_parts(text: str) -> list[Part]:
    if not text:
        return []
    if is_mime(text):
        return read_parts(text)
    return [Part(NODE_CONFIG if _is_mapping(text) else SHELL, text)]


def _is_mapping(text: str) -> bool:
    """Say whether user data is YAML of a mapping: a NodeConfig of the user's."""
    if len(text) > _LENGTH_MAX:
        return False
    try:
        return isinstance(yaml.load(text, yaml.CSafeLoader), dict)
    except (yaml.YAMLError, ValueError, RecursionError):
        return False


def _config(bootstrap: Bootstrap) -> str:
    is_raid = bootstrap.instance_store_policy == RAID0
    # Of the flags only the labels are left: all else is in the configuration.
    flags = [each for each in kubelet_flags(bootstrap) if each.startswith("--node-labels=")]
    node_config = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "metadata": {},
        "spec": {
            "cluster": {
                "apiServerEndpoint": bootstrap.endpoint,
                "certificateAuthority": bootstrap.ca_bundle,
                "cidr": bootstrap.cidr,
                "name": bootstrap.cluster,
            },
            "containerd": {},
            "instance": {"localStorage": {"strategy": RAID0} if is_raid else {}},
            "kubelet": {
                "config": {**_kubelet(bootstrap.kubelet), **_taints(bootstrap)},
                **({"flags": flags} if flags else {}),
            },
        },
    }
    written: str = yaml.dump(node_config, Dumper=_Dumper, sort_keys=True, width=_LENGTH_MAX)
    return _COMMENT + written


def _taints(bootstrap: Bootstrap) -> dict[str, Any]:
    return {
        "registerWithTaints": [
            {
                "effect": each.effect,
                "key": each.key,
                **({"value": each.value} if each.value else {}),
            }
            for each in bootstrap.taints
        ]
    }


def _kubelet(kubelet: Kubelet) -> dict[str, Any]:
    periods = {
        key: write_duration(period) for key, period in kubelet.eviction_soft_grace_period.items()
    }
    settings: Mapping[str, Any] = {
        "clusterDNS": list(kubelet.cluster_dns) or None,
        "cpuCFSQuota": kubelet.cpu_cfs_quota,
        "evictionHard": dict(kubelet.eviction_hard) or None,
        "evictionMaxPodGracePeriod": kubelet.eviction_max_pod_grace_period,
        "evictionSoft": dict(kubelet.eviction_soft) or None,
        "evictionSoftGracePeriod": periods or None,
        "imageGCHighThresholdPercent": kubelet.image_gc_high,
        "imageGCLowThresholdPercent": kubelet.image_gc_low,
        "kubeReserved": dict(kubelet.kube_reserved) or None,
        "maxPods": kubelet.max_pods,
        "podsPerCore": kubelet.pods_per_core,
        "systemReserved": dict(kubelet.system_reserved) or None,
    }
    return {key: value for key, value in settings.items() if value is not None}


class _Dumper(yaml.SafeDumper):
    """Writes YAML without anchors: what is the same object is written twice."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True
