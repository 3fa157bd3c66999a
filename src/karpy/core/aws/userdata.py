"""User data by image family: the script or configuration with which a machine joins the cluster."""

import re
import tomllib
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

import tomli_w
import yaml
from msgspec import Struct

from karpy.core.aws.bootstrap import (
    NODE_CONFIG,
    RAID0,
    SHELL,
    Bootstrap,
    MimePart,
    UserDataInvalid,
    is_mime,
    kubelet_flags,
    read_parts,
    write_parts,
)
from karpy.model.ec2nodeclass import Disk, DiskMapping, Ec2NodeClassSpec, Kubelet
from karpy.model.times import write_duration

_AL2_SCRIPT: Final = """\
#!/bin/bash -xe
exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
"""
_NODE_CONFIG_COMMENT: Final = "# Karpenter Generated NodeConfig\n"
_YAML_LENGTH_MAX: Final = 16384
_MOUNT: Final = "000-mount-instance-storage"
_INIT: Final = ["apiclient", "ephemeral-storage", "init"]
_BIND: Final = ["apiclient", "ephemeral-storage", "bind"]
_DIRS: Final = ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]
_BINDS_BY_ITSELF: Final = (1, 46)
"""From this version on, Bottlerocket binds instance storage without a list of directories."""
_BOTTLEROCKET_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")
_WINDOWS_SCRIPT: Final = r"$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"
AL2: Final = "AL2"
AL2023: Final = "AL2023"
BOTTLEROCKET: Final = "Bottlerocket"
CUSTOM: Final = "Custom"


def _al2_user_data(bootstrap: Bootstrap) -> str:
    """Return the user's parts, then the bootstrap script."""
    parts = []
    if bootstrap.user_data:
        written = bootstrap.user_data
        parts = read_parts(written) if is_mime(written) else [MimePart(SHELL, written)]
    return write_parts(
        [*parts, MimePart(SHELL, _AL2_SCRIPT + _bootstrap_command(bootstrap))]
    ).replace("\r", "")


def _bootstrap_command(bootstrap: Bootstrap) -> str:
    head = (
        f"/etc/eks/bootstrap.sh '{bootstrap.cluster}' --apiserver-endpoint '{bootstrap.endpoint}'"
    )
    lines = [f"{head} --b64-cluster-ca '{bootstrap.ca_bundle}'"]
    if bootstrap.is_ipv6:
        lines.append("--ip-family ipv6")
    if bootstrap.kubelet.cluster_dns:
        lines.append(f"--dns-cluster-ip '{bootstrap.kubelet.cluster_dns[0]}'")
    lines.append("--use-max-pods false")
    lines.append(f"--kubelet-extra-args '{' '.join(kubelet_flags(bootstrap))}'")
    if bootstrap.instance_store_policy == RAID0:
        lines.append("--local-disks raid0")
    return " \\\n".join(lines)


def _al2023_user_data(bootstrap: Bootstrap) -> str:
    """Return the user's parts, then a NodeConfig, which overrides those of the user."""
    return write_parts(
        [*_own_parts(bootstrap.user_data), MimePart(NODE_CONFIG, _node_config(bootstrap))]
    )


def _own_parts(text: str) -> list[MimePart]:
    if not text:
        return []
    if is_mime(text):
        return read_parts(text)
    return [MimePart(NODE_CONFIG if _is_mapping(text) else SHELL, text)]


def _is_mapping(text: str) -> bool:
    """Say whether user data is a YAML mapping, hence a NodeConfig of the user."""
    if len(text) > _YAML_LENGTH_MAX:
        return False
    try:
        return isinstance(yaml.load(text, yaml.CSafeLoader), dict)
    except (yaml.YAMLError, ValueError, RecursionError):
        return False


def _node_config(bootstrap: Bootstrap) -> str:
    is_raid = bootstrap.instance_store_policy == RAID0
    # Labels are the only flags: the other settings are in the kubelet's configuration.
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
                "config": {
                    **_kubelet_configuration(bootstrap.kubelet),
                    **_registered_taints(bootstrap),
                },
                **({"flags": flags} if flags else {}),
            },
        },
    }
    written: str = yaml.dump(node_config, Dumper=_Dumper, sort_keys=True, width=_YAML_LENGTH_MAX)
    return _NODE_CONFIG_COMMENT + written


def _registered_taints(bootstrap: Bootstrap) -> dict[str, Any]:
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


def _kubelet_configuration(kubelet: Kubelet) -> dict[str, Any]:
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
    """Writes YAML without anchors: an object that occurs twice is written twice."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _bottlerocket_user_data(bootstrap: Bootstrap) -> str:
    """Return the user's settings, overridden by those of the cluster; raise UserDataInvalid."""
    settings = _read_toml(bootstrap.user_data)
    own = _table(settings, "settings")
    # Differs: settings under `settings.kubernetes` in user data of Bottlerocket that Karpenter does
    # not know: Karpenter drops them; Karpy keeps them, because Bottlerocket has more settings now.
    kubernetes = _table(own, "kubernetes")
    kubernetes |= _cluster_settings(bootstrap)
    labels = kubernetes.get("node-labels")
    known = labels if isinstance(labels, dict) else {}
    kubernetes["node-labels"] = {**known, **bootstrap.labels}
    taints: dict[str, list[str]] = {}
    for each in bootstrap.taints:
        taints.setdefault(each.key, []).append(f"{each.value}:{each.effect}")
    kubernetes["node-taints"] = taints
    if bootstrap.instance_store_policy == RAID0:
        commands = _table(own, "bootstrap-commands")
        commands[_MOUNT] = _mount_commands(bootstrap.image_version)
    return tomli_w.dumps(settings)


def _table(parent: dict[str, Any], key: str) -> dict[str, Any]:
    found = parent.setdefault(key, {})
    if not isinstance(found, dict):
        raise UserDataInvalid(f"`{key}` is no table")
    return found


def _read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserDataInvalid(f"it is no TOML: {error}") from error


def _cluster_settings(bootstrap: Bootstrap) -> dict[str, Any]:
    kubelet = bootstrap.kubelet
    settings: dict[str, Any] = {
        "api-server": bootstrap.endpoint,
        "cluster-certificate": bootstrap.ca_bundle,
        "cluster-name": bootstrap.cluster,
    }
    if kubelet.cluster_dns:
        dns = list(kubelet.cluster_dns)
        settings["cluster-dns-ip"] = dns[0] if len(dns) == 1 else dns
    return settings | _kubelet_settings(kubelet)


def _kubelet_settings(kubelet: Kubelet) -> dict[str, Any]:
    periods = {
        key: write_duration(each) for key, each in kubelet.eviction_soft_grace_period.items()
    }
    settings = {
        "max-pods": kubelet.max_pods,
        "system-reserved": dict(kubelet.system_reserved) or None,
        "kube-reserved": dict(kubelet.kube_reserved) or None,
        "eviction-hard": dict(kubelet.eviction_hard) or None,
        "eviction-soft": dict(kubelet.eviction_soft) or None,
        "eviction-soft-grace-period": periods or None,
        "eviction-max-pod-grace-period": kubelet.eviction_max_pod_grace_period,
        "image-gc-high-threshold-percent": _text(kubelet.image_gc_high),
        "image-gc-low-threshold-percent": _text(kubelet.image_gc_low),
        "cpu-cfs-quota-enforced": kubelet.cpu_cfs_quota,
    }
    return {key: value for key, value in settings.items() if value is not None}


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _mount_commands(version: str) -> dict[str, Any]:
    bind = _BIND if _binds_by_itself(version) else [*_BIND, *_DIRS]
    return {"commands": [_INIT, bind], "essential": True, "mode": "always"}


def _binds_by_itself(version: str) -> bool:
    if version == "latest":
        return True
    match = _BOTTLEROCKET_VERSION.match(version)
    return match is not None and (int(match[1]), int(match[2])) >= _BINDS_BY_ITSELF


def _windows_user_data(bootstrap: Bootstrap) -> str:
    """Return the user's lines, then the call of the bootstrap script."""
    own = f"{bootstrap.user_data}\n" if bootstrap.user_data else ""
    call = (
        f"& $EKSBootstrapScriptFile -EKSClusterName '{bootstrap.cluster}'"
        f" -APIServerEndpoint '{bootstrap.endpoint}' -Base64ClusterCA '{bootstrap.ca_bundle}'"
        f" -KubeletExtraArgs '{' '.join(kubelet_flags(bootstrap))}'"
    )
    if bootstrap.kubelet.cluster_dns:
        call += f" -DNSClusterIP '{bootstrap.kubelet.cluster_dns[0]}'"
    return (
        f"<powershell>\n{own}"
        f'[string]$EKSBootstrapScriptFile = "{_WINDOWS_SCRIPT}"\n{call}\n</powershell>'
    )


class ImageFamily(Struct, frozen=True):
    """An image family: how its machines join a cluster, and their default disks."""

    name: str
    user_data: Callable[[Bootstrap], str]
    disks: tuple[DiskMapping, ...] = ()
    """The disks if the node class has none."""


def _disk(device: str, size: str) -> DiskMapping:
    return DiskMapping(device, Disk(encrypted=True, size=size, type="gp3"))


def _windows(year: str) -> ImageFamily:
    return ImageFamily(f"Windows{year}", _windows_user_data, (_disk("/dev/sda1", "50Gi"),))


FAMILIES: Final[Mapping[str, ImageFamily]] = {
    each.name: each
    for each in (
        ImageFamily(AL2, _al2_user_data, (_disk("/dev/xvda", "20Gi"),)),
        ImageFamily(AL2023, _al2023_user_data, (_disk("/dev/xvda", "20Gi"),)),
        ImageFamily(
            BOTTLEROCKET,
            _bottlerocket_user_data,
            (_disk("/dev/xvda", "4Gi"), _disk("/dev/xvdb", "20Gi")),
        ),
        _windows("2019"),
        _windows("2022"),
        _windows("2025"),
        ImageFamily(CUSTOM, lambda bootstrap: bootstrap.user_data),
    )
}
_OF_ALIAS: Final = {
    "al2": AL2,
    "al2023": AL2023,
    "bottlerocket": BOTTLEROCKET,
    "windows2019": "Windows2019",
    "windows2022": "Windows2022",
    "windows2025": "Windows2025",
}


def family_name(spec: Ec2NodeClassSpec) -> str:
    """Return the amiFamily of a node class, or the family of its alias; empty if unknown."""
    if spec.image_family:
        return spec.image_family
    return "" if spec.alias is None else _OF_ALIAS.get(spec.alias[0].lower(), "")


def family_of(spec: Ec2NodeClassSpec) -> ImageFamily:
    """Return the image family of a node class; AL2 if it is unknown."""
    return FAMILIES.get(family_name(spec), FAMILIES[AL2])


def encoded_user_data(family: ImageFamily, bootstrap: Bootstrap) -> str:
    """Return user data in base64; raise UserDataInvalid."""
    return b64encode(family.user_data(bootstrap).encode()).decode()
