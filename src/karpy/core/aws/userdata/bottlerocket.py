"""Bottlerocket: settings in TOML, the user's merged with what has the machine join."""

import re
import tomllib
from typing import Any, Final

import tomli_w

from karpy.core.aws.userdata.bootstrap import RAID0, Bootstrap, UserDataInvalid
from karpy.model.ec2nodeclass import Kubelet
from karpy.model.times import write_duration

_MOUNT: Final = "000-mount-instance-storage"
_INIT: Final = ["apiclient", "ephemeral-storage", "init"]
_BIND: Final = ["apiclient", "ephemeral-storage", "bind"]
_DIRS: Final = ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]
_BINDS_BY_ITSELF: Final = (1, 46)
"""From this version on storage is bound where it has to be without naming directories."""
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")


def user_data(bootstrap: Bootstrap) -> str:
    """Return the user's settings with those of the cluster over them; raise UserDataInvalid."""
    settings = _read(bootstrap.user_data)
    own = _table(settings, "settings")
    # Differs: settings of Kubernetes in own user data of Bottlerocket that are not known:
    # Karpenter drops them; Karpy keeps them, because Bottlerocket knows more settings by now.
    kubernetes = _table(own, "kubernetes")
    kubernetes |= _cluster(bootstrap)
    labels = kubernetes.get("node-labels")
    known = labels if isinstance(labels, dict) else {}
    kubernetes["node-labels"] = {**known, **bootstrap.labels}
    taints: dict[str, list[str]] = {}
    for each in bootstrap.taints:
        taints.setdefault(each.key, []).append(f"{each.value}:{each.effect}")
    kubernetes["node-taints"] = taints
    if bootstrap.instance_store_policy == RAID0:
        commands = _table(own, "bootstrap-commands")
        commands[_MOUNT] = _mount(bootstrap.image_version)
    return tomli_w.dumps(settings)


def _table(parent: dict[str, Any], key: str) -> dict[str, Any]:
    found = parent.setdefault(key, {})
    if not isinstance(found, dict):
        raise UserDataInvalid(f"`{key}` is no table")
    return found


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserDataInvalid(f"it is no TOML: {error}") from error


def _cluster(bootstrap: Bootstrap) -> dict[str, Any]:
    kubelet = bootstrap.kubelet
    settings: dict[str, Any] = {
        "api-server": bootstrap.endpoint,
        "cluster-certificate": bootstrap.ca_bundle,
        "cluster-name": bootstrap.cluster,
    }
    if kubelet.cluster_dns:
        dns = list(kubelet.cluster_dns)
        settings["cluster-dns-ip"] = dns[0] if len(dns) == 1 else dns
    return settings | _kubelet(kubelet)


def _kubelet(kubelet: Kubelet) -> dict[str, Any]:
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


def _mount(version: str) -> dict[str, Any]:
    bind = _BIND if _is_recent(version) else [*_BIND, *_DIRS]
    return {"commands": [_INIT, bind], "essential": True, "mode": "always"}


def _is_recent(version: str) -> bool:
    if version == "latest":
        return True
    match = _VERSION.match(version)
    return match is not None and (int(match[1]), int(match[2])) >= _BINDS_BY_ITSELF
