"""Objects of kinds that no decision reads, and the findings about them."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from karpy.codec.fields import Fields, JsonObject
from karpy.codec.findings import Finding, finding_of, note
from karpy.codec.providers import Provider, provider_of_class
from karpy.errors import NotRead

_NAMES_SHOWN: Final = 3
_TEMPLATES_SHOWN: Final = 3
_QUIET_GROUPS: Final = frozenset(
    {
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "cert-manager.io",
        "coordination.k8s.io",
        "crd.projectcalico.org",
        "discovery.k8s.io",
        "elbv2.k8s.aws",
        "events.k8s.io",
        "external-secrets.io",
        "extensions.istio.io",
        "flowcontrol.apiserver.k8s.io",
        "gateway.networking.k8s.io",
        "metrics.k8s.io",
        "networking.istio.io",
        "networking.k8s.io",
        "rbac.authorization.k8s.io",
        "security.istio.io",
        "snapshot.storage.k8s.io",
        "vpcresources.k8s.aws",
    }
)
"""API groups of access, networking and certificates: no kind in them creates or changes pods."""
_QUIET: Final = frozenset(
    {
        ("", "Binding"),
        ("", "ComponentStatus"),
        ("", "ConfigMap"),
        ("", "Endpoints"),
        ("", "Event"),
        ("", "Secret"),
        ("", "ServiceAccount"),
        ("apps", "ControllerRevision"),
        ("extensions", "Ingress"),
        ("karpenter.kwok.sh", "KWOKNodeClass"),
        ("kustomize.config.k8s.io", "Kustomization"),
        ("monitoring.coreos.com", "PodMonitor"),
        ("monitoring.coreos.com", "Probe"),
        ("monitoring.coreos.com", "PrometheusRule"),
        ("monitoring.coreos.com", "ServiceMonitor"),
        ("policy", "PodSecurityPolicy"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSIStorageCapacity"),
        ("storage.k8s.io", "VolumeAttachment"),
    }
)
_SCALERS: Final = frozenset(
    {("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")}
)
_POD_CREATORS: Final = frozenset(
    {
        ("argoproj.io", "Application"),
        ("argoproj.io", "ApplicationSet"),
        ("flink.apache.org", "FlinkDeployment"),
        ("helm.cattle.io", "HelmChart"),
        ("helm.toolkit.fluxcd.io", "HelmRelease"),
        ("kustomize.toolkit.fluxcd.io", "Kustomization"),
        ("monitoring.coreos.com", "Alertmanager"),
        ("monitoring.coreos.com", "Prometheus"),
        ("sparkoperator.k8s.io", "ScheduledSparkApplication"),
        ("sparkoperator.k8s.io", "SparkApplication"),
    }
)
"""Kinds that create pods without a pod template in the object."""
_OLD: Final = frozenset({"Provisioner", "AWSNodeTemplate"})
_CREATOR_HINT: Final = "add the pods it makes, or a Deployment or Job like them"
_OTHER_HINT: Final = "leave it out of the input if no pod depends on it"
_OLD_HINT: Final = "convert it first: `karpy convert FILE`"
_CLASS_HINT: Final = "make a catalog that has their effect, and name it with `--catalog FILE`"


class _Group(Struct):
    """The objects of one kind."""

    group: str
    kind: str
    places: list[str] = []
    templates: list[str] = []
    """Paths of the pod templates in all these objects."""


class NodeClassFound(Struct, frozen=True):
    """A node class of the input, for a catalog that knows what its fields mean."""

    group: str
    kind: str
    name: str
    value: JsonObject
    where: str
    """The object as error messages name it: file, document, kind and name."""
    is_refused: bool = False
    """Whether an API server would refuse it; its faults are findings of their own."""


class Bystanders:
    """Collects objects that no decision reads, and reports them kind by kind."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], _Group] = {}
        self.node_classes: list[NodeClassFound] = []

    def add(self, group: str, kind: str, fields: Fields, where: str) -> None:
        """Take in an object of a kind that no decision reads."""
        provider = provider_of_class(group, kind) if group else None
        if provider is not None and kind not in _OLD:
            self.add_class(group, kind, fields.obj, where)
            return
        same = self._groups.setdefault((group, kind), _Group(group, kind))
        same.places.append(where)
        if not _is_quiet(group, kind):
            same.templates += _templates(fields.obj, "")

    def add_class(
        self, group: str, kind: str, obj: JsonObject, where: str, *, is_refused: bool = False
    ) -> None:
        """Take in a node class, even a refused one: it describes the nodes of its NodePools."""
        meta = obj.get("metadata")
        name = meta.get("name") if isinstance(meta, dict) else None
        found = NodeClassFound(group, kind, str(name), obj, where, is_refused)
        self.node_classes.append(found)

    def findings(self) -> Iterator[Finding]:
        """Return the findings about all these objects except node classes, sorted by kind."""
        quiet = []
        for _, same in sorted(self._groups.items(), key=lambda each: (each[0][1], each[0][0])):
            if _is_quiet(same.group, same.kind):
                quiet.append(f"{len(same.places)} {same.kind}")
            elif (same.group, same.kind) in _SCALERS:
                message = f"{_counted(same)} is not followed: replicas count as they are written"
                yield note("SCALER", message, where=_only(same))
            else:
                yield _left_out(same)
        if quiet:
            message = "left aside, since scheduling does not depend on them: "
            yield note("LEFT_ASIDE", message + ", ".join(quiet))


def _is_quiet(group: str, kind: str) -> bool:
    return group in _QUIET_GROUPS or (group, kind) in _QUIET


def _left_out(same: _Group) -> Finding:
    """Return the warning about unread objects that create pods, or may create pods."""
    problem, hint = f"{_counted(same)} is not read", _OTHER_HINT
    if same.kind in _OLD:
        hint = _OLD_HINT
    elif same.templates:
        number = len(same.templates)
        paths = list(dict.fromkeys(same.templates))
        shown = ", ".join(f"`{each}`" for each in paths[:_TEMPLATES_SHOWN])
        what = "pod template" if number == 1 else f"{number} pod templates"
        problem += f": its {what} ({shown}) would make pods that the answer knows nothing of"
        hint = _CREATOR_HINT
    elif (same.group, same.kind) in _POD_CREATORS:
        problem += ": it would make pods that the answer knows nothing of"
        hint = _CREATOR_HINT
    else:
        problem += ": whether scheduling depends on it is not known"
    error = NotRead(problem=problem, hint=hint)
    return finding_of(error, where=_only(same), is_warning=True, is_left_out=True)


def _counted(same: _Group) -> str:
    """Name a kind, with the number and the names of its objects if there are several."""
    kind = f"{same.kind} of {same.group}" if same.group else same.kind
    if len(same.places) == 1:
        return kind
    names = [each.rpartition(", ")[2].rpartition(" ")[2] for each in same.places]
    shown = ", ".join(names[:_NAMES_SHOWN])
    hidden = len(names) - _NAMES_SHOWN
    more = f" and {hidden} more" if hidden > 0 else ""
    return f"{kind} ({len(names)}: {shown}{more})"


def _only(same: _Group) -> str:
    return same.places[0] if len(same.places) == 1 else ""


def unread_class(found: NodeClassFound) -> Finding:
    """Say which fields of a node class would change the answer if its catalog read them."""
    provider = provider_of_class(found.group, found.kind)
    assert provider is not None
    return _of_class(provider, found.kind, Fields(found.value), found.where)


def _of_class(provider: Provider, kind: str, fields: Fields, where: str) -> Finding:
    spec = fields.child("spec")
    found = []
    for name in provider.deciding:
        value = spec.obj.get(name)
        if name == "kubelet" and isinstance(value, dict):
            found += [f"`spec.kubelet.{each}`" for each in value]
        elif value not in (None, [], {}):
            found.append(f"`spec.{name}`")
    if not found:
        message = f"{kind} is not read; none of its fields would change the answer"
        return note("CLASS_NOT_READ", message, where=where)
    problem = f"{kind} is not read: {', '.join(found)} would change what fits, where, or its price"
    error = NotRead(problem=problem, hint=_CLASS_HINT)
    return finding_of(error, where=where, is_warning=True, is_left_out=True)


def _templates(value: object, path: str) -> Iterator[str]:
    """Find pod templates: objects whose `spec`, or which themselves, have containers."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _templates(each, f"{path}[{index}]")
        return
    if not isinstance(value, dict):
        return
    spec = value.get("spec")
    if _has_containers(spec):
        yield path or "spec"
    elif _has_containers(value):
        yield path
    else:
        for key, each in value.items():
            if isinstance(each, dict | list):
                yield from _templates(each, f"{path}.{key}" if path else str(key))


def _has_containers(value: object) -> bool:
    containers = value.get("containers") if isinstance(value, dict) else None
    return isinstance(containers, list) and any(isinstance(each, dict) for each in containers)
