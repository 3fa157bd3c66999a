"""All documents of a call, as objects of today."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from karpy.codec.convert import clusterfile, v1alpha1, v1alpha5, v1beta1
from karpy.codec.convert.conversion import Conversion, FieldChange, FileCount
from karpy.codec.convert.drafts import (
    AWS,
    AWS_GROUP,
    CORE,
    EC2_CLASS,
    NO_CLUSTER,
    ConversionContext,
    Converted,
    NamedCluster,
    ObjectDraft,
    Source,
)
from karpy.codec.convert.groups import groups_in, is_group
from karpy.codec.convert.held import checked, why_not_ready
from karpy.codec.convert.kubelets import (
    KUBELET_ANNOTATION_PATH,
    place_kubelets,
    without_kubelet_annotation,
)
from karpy.codec.convert.moves import Moves
from karpy.codec.convert.neighbours import ConversionNeighbours
from karpy.codec.convert.objects import (
    Found,
    has_smart_quotes,
    objects_in,
    without_smart_quotes,
)
from karpy.codec.convert.oldfields import Notes, OldFields
from karpy.codec.convert.workloads import renamed
from karpy.codec.documents import Document
from karpy.codec.fields import FieldInvalid
from karpy.codec.findings import file_of
from karpy.codec.treefiles import BUILD_HINT, is_kustomization, kind_hint, why_unbuilt
from karpy.codec.versions import check_version
from karpy.errors import ManifestInvalid

_Change: TypeAlias = Callable[[OldFields, ConversionContext], Converted]
_OLD: Final[Mapping[tuple[str, str], tuple[_Change, Moves]]] = {
    ("karpenter.sh/v1alpha5", "Provisioner"): (v1alpha5.node_pool, v1alpha5.MOVES),
    ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"): (v1alpha1.node_class, v1alpha1.MOVES),
    ("karpenter.sh/v1beta1", "NodePool"): (v1beta1.node_pool, v1beta1.POOL_MOVES),
    ("karpenter.sh/v1beta1", "NodeClaim"): (v1beta1.node_claim, {}),
    ("karpenter.k8s.aws/v1beta1", EC2_CLASS): (v1beta1.node_class, v1beta1.CLASS_MOVES),
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
_TOO_DEEP: Final = FieldInvalid("", "is nested too deeply", "check that it is a manifest")


def convert(
    documents: Iterable[Document | ManifestInvalid],
    role: str = "",
    cluster: NamedCluster = NO_CLUSTER,
) -> Conversion:
    """
    Return the objects of all documents as objects of today, in their order.

    Documents of a call are converted together: a pool may refer to a node class in another
    document. `role` is the IAM role for node classes that name none, and `cluster` is the cluster
    of pools from a cluster definition file. Objects of today are returned unchanged.
    """
    found = [each for document in documents for each in _objects(document)]
    neighbours = ConversionNeighbours(
        (each for each in found if isinstance(each, Found)), role, cluster
    )
    parts = [part for whole in found for part in _parts(whole)]
    return _conversion(_drafts(parts, neighbours))


def convert_groups(
    documents: Iterable[Document | ManifestInvalid],
    role: str = "",
    cluster: NamedCluster = NO_CLUSTER,
) -> Conversion:
    """Propose a NodePool and an EC2NodeClass for each group that the AWS CLI describes."""
    found = [each for document in documents for each in _objects(document)]
    groups = groups_in(each for each in found if isinstance(each, Found))
    failed = (each for each in found if isinstance(each, ObjectDraft))
    return _conversion(_drafts([*failed, *groups], ConversionNeighbours((), role, cluster)))


def carry_over(found: Sequence[Found], beside: Sequence[Found] = ()) -> Sequence[ObjectDraft]:
    """Convert objects of any version; `beside` are objects that these may refer to."""
    return _drafts(found, ConversionNeighbours((*found, *beside)))


def _drafts(
    parts: Iterable[Found | Source | ObjectDraft], neighbours: ConversionNeighbours
) -> Sequence[ObjectDraft]:
    """Return a draft for each part; that of a part that cannot be converted has problems only."""
    drafts: list[ObjectDraft] = []
    for each in parts:
        if isinstance(each, ObjectDraft):
            drafts.append(each)
            continue
        file = each.found.file if isinstance(each, Source) else each.file
        try:
            drafts.append(_draft(each, neighbours.context_for(file)))
        except FieldInvalid as error:
            drafts.append(_failed(file, each.where, error, *error.others))
        except RecursionError:
            drafts.append(_failed(file, each.where, _TOO_DEEP))
    return [checked(each) for each in place_kubelets(drafts)]


def _parts(found: Found | ObjectDraft) -> Sequence[Found | Source | ObjectDraft]:
    if isinstance(found, Found) and clusterfile.is_cluster_file(found.value):
        return clusterfile.sources_in(found)
    return (found,)


def _objects(document: Document | ManifestInvalid) -> Iterable[Found | ObjectDraft]:
    """Return the objects of a document, and a failed draft for each value that is no object."""
    if isinstance(document, ManifestInvalid):
        where = document.where
        return [ObjectDraft(file_of(where), where, (), problems=(document,), is_refused=True)]
    file, where = document.file, document.where
    try:
        return [
            each if isinstance(each, Found) else _failed(file, where, each)
            for each in objects_in(document, with_comments=True)
        ]
    except RecursionError:
        return [_failed(file, where, _TOO_DEEP)]


def _failed(file: str, where: str, *faults: FieldInvalid) -> ObjectDraft:
    problems = tuple(_problem(where, each) for each in faults)
    return ObjectDraft(file, where, (), problems=problems, is_refused=True)


def _conversion(drafts: Sequence[ObjectDraft]) -> Conversion:
    files: dict[str, list[ObjectDraft]] = {}
    for each in drafts:
        files.setdefault(each.file, []).append(each)
    return Conversion(
        products=tuple(product for each in drafts for product in each.products),
        notes=tuple(note for each in drafts for note in each.notes),
        problems=tuple(
            problem for each in drafts for problem in (*each.problems, *why_not_ready(each))
        ),
        files=tuple(_counted(file, each) for file, each in files.items()),
    )


def _counted(file: str, drafts: Sequence[ObjectDraft]) -> FileCount:
    converted = sum(each.is_converted and not each.is_refused for each in drafts)
    failed = sum(each.is_refused for each in drafts)
    return FileCount(
        file,
        converted=converted,
        unchanged=len(drafts) - converted - failed,
        failed=failed,
        changes=Counter(note.change for each in drafts for note in each.notes),
    )


def _draft(found: Found | Source, context: ConversionContext) -> ObjectDraft:
    if isinstance(found, Source):
        return _changed(found, context)
    if is_kustomization(found.file, found.value):
        return _kustomization(found)
    _check_head(found)
    if (found.version, found.kind) in _TODAY:
        return _current_draft(found)
    if found.group in KARPENTER_GROUPS:
        return _old_draft(found, context)
    notes = Notes(found.where)
    value = renamed(found.value, "", notes)
    is_changed = value != found.value
    return ObjectDraft(
        found.file, found.where, (value,), tuple(notes.all), is_changed, source=found
    )


def _check_head(found: Found) -> None:
    """Refuse an object without a kind or version, or with a version that its kind does not have."""
    if not found.value.get("kind") and is_group(found.value):
        raise FieldInvalid("", "is a group of machines", "add `--from-nodegroups`")
    head = OldFields(found.value, "", Notes(found.where))
    for key in ("kind", "apiVersion"):
        if not head.text(key):
            head.fail(key, "is missing", kind_hint(found.file))
    check_version(found.version, found.kind)


def _kustomization(found: Found) -> ObjectDraft:
    notes = Notes(found.where)
    why = why_unbuilt(found.value)
    if why:
        notes.add(FieldChange.LOST, "", f"{why}; {BUILD_HINT}")
    else:
        notes.add(FieldChange.DROPPED, "", "a kustomization names files and is no object itself")
    return ObjectDraft(found.file, found.where, (), tuple(notes.all))


def _current_draft(found: Found) -> ObjectDraft:
    notes = Notes(found.where)
    value = found.value
    if has_smart_quotes(value):
        value = without_smart_quotes(value, "", notes)
    value, kubelet = without_kubelet_annotation(value, notes)
    return ObjectDraft(
        found.file,
        found.where,
        (value,),
        tuple(notes.all),
        is_converted=value != found.value,
        kubelet=kubelet,
        kubelet_path=KUBELET_ANNOTATION_PATH,
        source=found,
    )


def _old_draft(found: Found, context: ConversionContext) -> ObjectDraft:
    change, moves = _OLD[found.version, found.kind]
    return _changed(Source(found, change, moves), context)


def _changed(source: Source, context: ConversionContext) -> ObjectDraft:
    found = source.found
    notes = Notes(found.where)
    value = found.value
    if isinstance(value, dict):
        value = without_smart_quotes(value, found.path, notes)
    made = source.change(OldFields(value, found.path, notes), context)
    faults = _outermost(notes.faults)
    for fault in faults[:1]:
        fault.others = (*faults[1:], *notes.problems)
        raise fault
    return ObjectDraft(
        found.file,
        found.where,
        made.objects,
        tuple(notes.all),
        is_converted=bool(made.objects),
        kubelet=made.kubelet,
        kubelet_path=made.kubelet_path,
        problems=tuple(_problem(found.where, each) for each in notes.problems),
        source=found,
        moves=source.moves,
    )


def _outermost(faults: Sequence[FieldInvalid]) -> list[FieldInvalid]:
    """Leave out faults of fields within a field that has a fault itself."""
    above = tuple(f"{each.path}{sign}" for each in faults if each.path for sign in ".[")
    return [each for each in faults if not each.path.startswith(above)]


def _problem(where: str, error: FieldInvalid) -> ManifestInvalid:
    return ManifestInvalid(where=where, path=error.path, problem=error.problem, hint=error.hint)
