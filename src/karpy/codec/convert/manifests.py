"""All documents of a call, as objects of today."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from karpy.codec.convert import clusterfile, v1alpha1, v1alpha5, v1beta1
from karpy.codec.convert.conversion import Change, Conversion
from karpy.codec.convert.drafts import (
    AWS,
    AWS_GROUP,
    CORE,
    EC2_CLASS,
    NO_CLUSTER,
    Cluster,
    Converted,
    Draft,
    Source,
    Surroundings,
)
from karpy.codec.convert.groups import groups_in, is_group
from karpy.codec.convert.held import held, why_not_ready
from karpy.codec.convert.kubelets import place_kubelets
from karpy.codec.convert.objects import Found, objects_in, without_smart_quotes
from karpy.codec.convert.oldfields import Notes, OldFields
from karpy.codec.convert.workloads import renamed
from karpy.codec.documents import Document
from karpy.codec.fields import FieldInvalid
from karpy.codec.versions import check_version
from karpy.errors import ManifestInvalid

_OLD: Final[Mapping[tuple[str, str], Callable[[OldFields, Surroundings], Converted]]] = {
    ("karpenter.sh/v1alpha5", "Provisioner"): v1alpha5.node_pool,
    ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"): v1alpha1.node_class,
    ("karpenter.sh/v1beta1", "NodePool"): v1beta1.node_pool,
    ("karpenter.sh/v1beta1", "NodeClaim"): v1beta1.node_claim,
    ("karpenter.k8s.aws/v1beta1", EC2_CLASS): v1beta1.node_class,
}
_TODAY: Final = frozenset(
    {
        (CORE, "NodePool"),
        (CORE, "NodeClaim"),
        ("karpenter.sh/v1alpha1", "NodeOverlay"),
        (AWS, EC2_CLASS),
    }
)
KARPENTER_GROUPS: Final = frozenset({"karpenter.sh", AWS_GROUP})
_SETTINGS: Final = "karpenter-global-settings"
_PROFILE: Final = "aws.defaultInstanceProfile"
_TOO_DEEP: Final = FieldInvalid("", "is nested too deeply", "check that it is a manifest")
_KIND_HINT: Final = "add `apiVersion` and `kind`, as in any Kubernetes manifest"


def convert(
    documents: Iterable[Document | ManifestInvalid],
    role: str = "",
    cluster: Cluster = NO_CLUSTER,
) -> Conversion:
    """
    Return the objects of all documents as objects of today, in their order.

    Documents of a call are seen together: a pool refers to a node class in another one. `role` is
    the IAM role for node classes that name none, and `cluster` the one that pools of a cluster
    definition file are for. Objects of today are returned unchanged.
    """
    problems: list[ManifestInvalid] = []
    found = [each for document in documents for each in _objects(document, problems)]
    surroundings = replace(_surroundings(found, role), cluster=cluster)
    parts = [part for whole in found for part in _parts(whole)]
    return _conversion(_drafts(parts, surroundings, problems), problems)


def convert_groups(
    documents: Iterable[Document | ManifestInvalid],
    role: str = "",
    cluster: Cluster = NO_CLUSTER,
) -> Conversion:
    """Propose a NodePool and an EC2NodeClass for each group that the AWS CLI describes."""
    problems: list[ManifestInvalid] = []
    found = [each for document in documents for each in _objects(document, problems)]
    surroundings = Surroundings(role, cluster=cluster)
    return _conversion(_drafts(groups_in(found), surroundings, problems), problems)


def carry_over(found: Sequence[Found], problems: list[ManifestInvalid]) -> Sequence[Draft]:
    """Return what objects of any version are today; add what cannot be one to the problems."""
    return _drafts(found, _surroundings(found, ""), problems)


def _drafts(
    parts: Iterable[Found | Source], surroundings: Surroundings, problems: list[ManifestInvalid]
) -> Sequence[Draft]:
    """Return what the parts become; add what cannot be converted to the problems."""
    drafts: list[Draft] = []
    for each in parts:
        try:
            drafts.append(_draft(each, surroundings))
        except FieldInvalid as error:
            problems.append(_problem(each.where, error))
        except RecursionError:
            problems.append(_problem(each.where, _TOO_DEEP))
    return [held(each) for each in place_kubelets(drafts)]


def _parts(found: Found) -> Sequence[Found | Source]:
    is_cluster_file = clusterfile.is_cluster_file(found.value)
    return clusterfile.sources_in(found) if is_cluster_file else (found,)


def _objects(
    document: Document | ManifestInvalid, problems: list[ManifestInvalid]
) -> Iterable[Found]:
    """Return the objects of a document; add what is none to the problems."""
    if isinstance(document, ManifestInvalid):
        problems.append(document)
        return ()
    try:
        each_found = list(objects_in(document))
    except RecursionError:
        each_found = [_TOO_DEEP]
    problems += [
        _problem(document.where, each) for each in each_found if isinstance(each, FieldInvalid)
    ]
    return [each for each in each_found if isinstance(each, Found)]


def _conversion(drafts: Sequence[Draft], problems: Sequence[ManifestInvalid]) -> Conversion:
    converted = sum(each.is_converted and not each.is_refused for each in drafts)
    refused = sum(each.is_refused for each in drafts)
    return Conversion(
        objects=tuple(obj for each in drafts for obj in each.objects),
        notes=tuple(note for each in drafts for note in each.notes),
        problems=(
            *problems,
            *(told for each in drafts for told in (*each.problems, *why_not_ready(each))),
        ),
        converted=converted,
        unchanged=len(drafts) - converted - refused,
        failed=len(problems) + refused,
    )


def _draft(found: Found | Source, surroundings: Surroundings) -> Draft:
    if isinstance(found, Source):
        return _changed(found, surroundings)
    known = (found.version, found.kind)
    if found.kind:
        check_version(found.version, found.kind)
    if known in _TODAY:
        return Draft(found.file, found.where, (found.value,))
    if found.group in KARPENTER_GROUPS:
        return _old_draft(found, surroundings)
    notes = Notes(found.where)
    if not found.kind:
        if is_group(found.value):
            raise FieldInvalid("", "is a group of machines", "add `--from-nodegroups`")
        if not _is_kustomization(found):
            raise FieldInvalid("kind", "is missing", _KIND_HINT)
        notes.add(Change.DROPPED, "", "a kustomization names files and is no object itself")
        return Draft(found.file, found.where, (), tuple(notes.all))
    value = renamed(found.value, "", notes)
    return Draft(found.file, found.where, (value,), tuple(notes.all), bool(notes.all))


def _old_draft(found: Found, surroundings: Surroundings) -> Draft:
    change = _OLD.get((found.version, found.kind))
    if change is None:
        raise FieldInvalid("kind", "is missing", _KIND_HINT)
    return _changed(Source(found, change), surroundings)


def _changed(source: Source, surroundings: Surroundings) -> Draft:
    found = source.found
    notes = Notes(found.where)
    value = without_smart_quotes(found.value, found.path, notes)
    made = source.change(OldFields(value, found.path, notes), surroundings)
    return Draft(
        found.file,
        found.where,
        made.objects,
        tuple(notes.all),
        is_converted=bool(made.objects),
        kubelet=made.kubelet,
        kubelet_path=made.kubelet_path,
        problems=tuple(_problem(found.where, each) for each in notes.problems),
    )


def _surroundings(found: Iterable[Found], role: str) -> Surroundings:
    classes: dict[str, tuple[str, str]] = {}
    profile = ""
    for each in found:
        if each.kind in {"AWSNodeTemplate", EC2_CLASS}:
            classes[each.name] = (AWS_GROUP, EC2_CLASS)
        elif each.kind.endswith("NodeClass"):
            classes.setdefault(each.name, (each.group, each.kind))
        elif (each.kind, each.name) == ("ConfigMap", _SETTINGS):
            data = each.value.get("data")
            value = data.get(_PROFILE) if isinstance(data, dict) else None
            profile = value if isinstance(value, str) else profile
    return Surroundings(role, profile, classes)


def _is_kustomization(found: Found) -> bool:
    return found.file.rpartition("/")[2] in {"kustomization.yaml", "kustomization.yml"}


def _problem(where: str, error: FieldInvalid) -> ManifestInvalid:
    return ManifestInvalid(where=where, path=error.path, problem=error.problem, hint=error.hint)
