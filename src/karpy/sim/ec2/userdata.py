"""Reads user data as a machine does: how its kubelet joins the cluster."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from email import message_from_string
from typing import Any, Final

import yaml
from msgspec import Struct

from karpy.codec.fields import JsonObject

_FLAG: Final = re.compile(r"--(node-labels|register-with-taints|max-pods)=\"?([^\"'\s]*)\"?")
_BOOTSTRAP: Final = re.compile(r"/etc/eks/bootstrap\.sh '([^']*)' --apiserver-endpoint '([^']*)'")
_WINDOWS: Final = re.compile(r"-EKSClusterName '([^']*)' -APIServerEndpoint '([^']*)'")
_NODE_CONFIG: Final = "application/node.eks.aws"


class Joining(Struct, frozen=True):
    """How a kubelet joins: cluster, labels, taints and pod limit."""

    cluster: str = ""
    """Empty if the machine joins no cluster."""
    endpoint: str = ""
    labels: Mapping[str, str] = {}
    taints: tuple[JsonObject, ...] = ()
    max_pods: int | None = None


def read_user_data(text: str) -> Joining:
    """Read the user data of any image family, as the programs on its images do."""
    if text.startswith("MIME-Version"):
        return _multipart(text)
    if text.startswith("<powershell>"):
        return _script(text, _WINDOWS) or Joining()
    try:
        return _settings(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return Joining()


def _multipart(text: str) -> Joining:
    config: dict[str, Any] = {}
    found = Joining()
    for kind, part in _parts(text):
        if kind != _NODE_CONFIG:
            found = _script(part, _BOOTSTRAP) or found
            continue
        try:
            more = yaml.safe_load(part)
        except yaml.YAMLError:
            # As on the image: a machine whose configuration cannot be read does not join.
            return Joining()
        config = _merged(config, more if isinstance(more, dict) else {})
    return _node_config(config) if config else found


def _merged(before: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two configurations: the later one wins, and flags of both count."""
    merged = dict(before)
    for key, value in more.items():
        known = merged.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[key] = _merged(known, value)
        elif key == "flags" and known:
            merged[key] = [*known, *(value or ())]
        else:
            merged[key] = value
    return merged


def _parts(text: str) -> Iterator[tuple[str, str]]:
    for part in message_from_string(text).walk():
        if not part.is_multipart():
            yield part.get_content_type(), str(part.get_payload())


def _node_config(config: dict[str, Any]) -> Joining:
    spec = config.get("spec") or {}
    cluster, kubelet = spec.get("cluster") or {}, spec.get("kubelet") or {}
    flags = dict(_FLAG.findall(" ".join(kubelet.get("flags") or ())))
    settings = kubelet.get("config") or {}
    return Joining(
        cluster.get("name", ""),
        cluster.get("apiServerEndpoint", ""),
        _pairs(flags.get("node-labels", "")),
        tuple(settings.get("registerWithTaints") or ()),
        settings.get("maxPods"),
    )


def _script(text: str, call: re.Pattern[str]) -> Joining | None:
    found = call.search(text)
    if found is None:
        return None
    flags = dict(_FLAG.findall(text))
    pods = flags.get("max-pods", "")
    return Joining(
        found[1],
        found[2],
        _pairs(flags.get("node-labels", "")),
        tuple(map(_taint, filter(None, flags.get("register-with-taints", "").split(",")))),
        int(pods) if pods else None,
    )


def _settings(settings: dict[str, Any]) -> Joining:
    kubernetes = (settings.get("settings") or {}).get("kubernetes") or {}
    taints = [
        _taint(f"{key}={each}")
        for key, values in (kubernetes.get("node-taints") or {}).items()
        for each in values
    ]
    return Joining(
        kubernetes.get("cluster-name", ""),
        kubernetes.get("api-server", ""),
        kubernetes.get("node-labels") or {},
        tuple(taints),
        kubernetes.get("max-pods"),
    )


def _pairs(text: str) -> dict[str, str]:
    pairs = (each.partition("=") for each in text.split(",") if each)
    return {key: value for key, _, value in pairs}


def _taint(text: str) -> JsonObject:
    head, _, effect = text.rpartition(":")
    key, _, value = head.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}
