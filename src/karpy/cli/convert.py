"""`karpy convert`: what was written for older versions, as today's objects."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from karpy.cli.findings import findings_answer
from karpy.cli.inputs import read_documents
from karpy.cli.options import ANSWERED_NO, DONE, FAILED, Injected
from karpy.cli.solve import Files
from karpy.cli.tables import count_of
from karpy.cli.terminal import Line, Span, Style, Terminal, line
from karpy.codec.convert.conversion import Change, Conversion, Note
from karpy.codec.convert.drafts import Cluster
from karpy.codec.convert.manifests import convert as convert_documents
from karpy.codec.convert.manifests import convert_groups
from karpy.codec.convert.yamltexts import to_yaml
from karpy.codec.documents import read_documents as documents_in
from karpy.codec.findings import of_problem, place_of

_STYLES: Final = {
    Change.ADDED: Style.CARE,
    Change.RENAMED: Style.QUIET,
    Change.DROPPED: Style.QUIET,
    Change.LOST: Style.BAD,
}


def _check_pairs(_type: object, pairs: tuple[str, ...]) -> None:
    for each in pairs:
        if not all(each.partition("=")):
            msg = f"{each} is not KEY=VALUE"
            raise ValueError(msg)


_TAGS: Final = Parameter(
    metavar="KEY=VALUE", show_default=False, negative="", validator=_check_pairs
)


@Parameter(name="*")
@dataclass(frozen=True)
class Place:
    """The cluster that objects are for, where the input does not say it."""

    role: Annotated[
        str,
        Parameter(
            show_default=False,
            metavar="NAME",
            help="The IAM role for node classes that name neither role nor instance profile.",
        ),
    ] = ""
    cluster_name: Annotated[
        str,
        Parameter(
            show_default=False,
            metavar="NAME",
            help="The cluster of pools that are made of no manifest.",
        ),
    ] = ""
    subnet_tag: Annotated[
        tuple[str, ...], _TAGS, Parameter(help="A tag of their subnets; can be repeated.")
    ] = ()
    security_group_tag: Annotated[
        tuple[str, ...], _TAGS, Parameter(help="A tag of their security groups; can be repeated.")
    ] = ()

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.cluster_name, _pairs(self.subnet_tag), _pairs(self.security_group_tag))

    def check_text(self) -> None:
        """Raise UnicodeEncodeError where a word is no text: it would end up in the objects."""
        words = (self.role, self.cluster_name, *self.subnet_tag, *self.security_group_tag)
        "\n".join(words).encode()


def _pairs(tags: tuple[str, ...]) -> dict[str, str]:
    return {key: value for key, _, value in (each.partition("=") for each in tags)}


_NOWHERE: Final = Place()


def convert(
    files: Files,
    /,
    *,
    place: Place = _NOWHERE,
    from_nodegroups: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="FILES are node groups or Auto Scaling groups, as the AWS CLI prints them.",
        ),
    ] = False,
    check: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Print no objects; exit with 3 if something would be lost. JSON has the notes.",
        ),
    ] = False,
    output: Annotated[Literal["yaml", "json"], Parameter(help="How to write them.")] = "yaml",
    terminal: Injected,
) -> int:
    """
    Convert Provisioners, AWSNodeTemplates and v1beta1 objects to today's NodePools.

    For example:

        $ karpy convert manifests/ > converted.yaml
        $ kubectl get nodepools,ec2nodeclasses -o yaml | karpy convert - --check
        $ aws eks describe-nodegroup --cluster-name shop --nodegroup-name web |
            karpy convert --from-nodegroups -

    Give pools, their node classes and workloads in one call: they refer to each other. Today's
    objects are printed as they are; the notes on stderr name each field that is added, renamed,
    dropped or lost. Entries of `karpenter.node_pools` in a cluster definition file, and groups with
    --from-nodegroups, become a NodePool and an EC2NodeClass each. Exits with 1 if a document could
    not be read or converted.
    """
    place.check_text()
    documents = [
        each
        for file, text in read_documents(files, terminal.stdin)
        for each in documents_in(file, text)
    ]
    change = convert_groups if from_nodegroups else convert_documents
    conversion = change(documents, place.role, place.cluster)
    if check and output == "json":
        terminal.answer_json(_report(conversion))
    elif not check:
        _answer(conversion, output, terminal)
    terminal.tell(*_notes(conversion.notes), *_problems(conversion), _summary(conversion))
    if check:
        return DONE if conversion.is_lossless else ANSWERED_NO
    return FAILED if conversion.problems else DONE


def _answer(conversion: Conversion, output: str, terminal: Terminal) -> None:
    if output == "json":
        items = list(conversion.objects)
        terminal.answer_json({"apiVersion": "v1", "kind": "List", "items": items})
    elif conversion.objects:
        terminal.answer_text(to_yaml(conversion.objects))


def _report(conversion: Conversion) -> dict[str, Any]:
    """Write for a machine what would become of each field, without the objects."""
    return {
        "isLossless": conversion.is_lossless,
        "converted": conversion.converted,
        "unchanged": conversion.unchanged,
        "notes": [
            {
                "change": each.change.name,
                **dict(zip(("source", "object"), place_of(each.where), strict=True)),
                "path": each.path,
                "message": each.text,
            }
            for each in conversion.notes
        ],
        "findings": findings_answer([of_problem(each) for each in conversion.problems]),
    }


def _notes(notes: Sequence[Note]) -> list[Line]:
    lines = []
    for where, group in groupby(notes, key=lambda each: each.where):
        lines.append(line(Span(where, Style.STRONG)))
        lines += [_note(each) for each in group]
    return lines


def _note(note: Note) -> Line:
    change = Span(note.change.name.ljust(len(Change.RENAMED.name)), _STYLES[note.change])
    path = (Span(note.path, Style.NAME), Span(": ")) if note.path else ()
    return line("  ", change, "  ", *path, note.text)


def _problems(conversion: Conversion) -> list[Line]:
    lines = []
    for each in conversion.problems:
        lines.append(line(Span("error: ", Style.BAD), f"{each.message} ({each.code})"))
        lines.append(line(Span("  hint: ", Style.QUIET), each.hint))
    return lines


def _summary(conversion: Conversion) -> Line:
    failed = conversion.failed
    read = conversion.converted + conversion.unchanged + failed
    changes = Counter(each.change for each in conversion.notes)
    fields = ", ".join(f"{changes[each]} {each.value}" for each in Change)
    return line(
        f"{count_of(read, 'object')} read: {conversion.converted} converted, "
        f"{conversion.unchanged} unchanged, {failed} failed; fields: {fields}"
    )
