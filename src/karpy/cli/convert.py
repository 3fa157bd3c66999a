"""`karpy convert`: objects of older versions, and node groups, as today's objects."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from karpy.cli.findings import findings_answer, report_findings
from karpy.cli.inputs import Sources, read_sources
from karpy.cli.options import ANSWERED_NO, DONE, FAILED, Injected
from karpy.cli.solve import Files
from karpy.cli.tables import Align, Column, count_of, few_of, table
from karpy.cli.terminal import Line, Span, Style, Terminal, line
from karpy.codec.convert.conversion import Conversion, FieldChange, FileCount, Note
from karpy.codec.convert.drafts import NamedCluster
from karpy.codec.convert.manifests import convert as convert_documents
from karpy.codec.convert.manifests import convert_groups
from karpy.codec.convert.yamltexts import to_yaml, write_products
from karpy.codec.documents import Document, read_documents
from karpy.codec.findings import of_problem, place_of
from karpy.errors import ManifestInvalid

_STEPS_MAX: Final = 100
"""Most updates of the progress."""
_TABLE_MIN: Final = 2
_NAMES_SHOWN: Final = 3
_FILE_WIDTH: Final = 35
_COLUMNS: Final = (
    Column("file"),
    *(
        Column(title, Align.RIGHT)
        for title in (
            "read",
            "converted",
            "unchanged",
            "failed",
            *(each.value for each in FieldChange),
        )
    ),
)
_STYLES: Final = {
    FieldChange.ADDED: Style.CARE,
    FieldChange.RENAMED: Style.QUIET,
    FieldChange.DROPPED: Style.QUIET,
    FieldChange.LOST: Style.BAD,
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
class NamedPlace:
    """The cluster of the objects, where the input does not name it."""

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
    def cluster(self) -> NamedCluster:
        return NamedCluster(
            self.cluster_name, _pairs(self.subnet_tag), _pairs(self.security_group_tag)
        )

    def check_text(self) -> None:
        """Raise UnicodeEncodeError for a word that UTF-8 cannot encode, as it gets into objects."""
        words = (self.role, self.cluster_name, *self.subnet_tag, *self.security_group_tag)
        "\n".join(words).encode()


def _pairs(tags: tuple[str, ...]) -> dict[str, str]:
    return {key: value for key, _, value in (each.partition("=") for each in tags)}


_NOWHERE: Final = NamedPlace()


def convert(
    files: Files,
    /,
    *,
    place: NamedPlace = _NOWHERE,
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
    objects are printed as they are; comments go along with their fields. The notes on stderr name
    each field that is added, renamed, dropped or lost. Entries of `karpenter.node_pools` in a
    cluster definition file, and groups with --from-nodegroups, become a NodePool and an
    EC2NodeClass each. Exits with 1 if a document could not be read or converted, or if a field is
    lost.
    """
    place.check_text()
    documents = _read(read_sources(files, terminal.stdin), terminal)
    change = convert_groups if from_nodegroups else convert_documents
    conversion = change(documents, place.role, place.cluster)
    terminal.show_progress("")
    if check and output == "json":
        terminal.answer_json(_report(conversion))
    elif not check:
        _answer(conversion, output, terminal)
    terminal.report(*_notes(conversion.notes))
    report_findings(map(of_problem, conversion.problems), terminal)
    terminal.report(*_repeated(conversion), *_files(conversion.files), _summary(conversion))
    if conversion.is_lossless:
        return DONE
    return ANSWERED_NO if check else FAILED


def _read(sources: Sources, terminal: Terminal) -> list[Document | ManifestInvalid]:
    """Parse all files, and show the progress."""
    documents: list[Document | ManifestInvalid] = list(sources.unreadable)
    count = len(sources.texts)
    for number, (file, text) in enumerate(sources.texts):
        if count > 1 and number % (count // _STEPS_MAX + 1) == 0:
            terminal.show_progress(f"reading file {number + 1:,} of {count:,}: {file}")
        documents += read_documents(file, text)
    terminal.show_progress(f"converting {count_of(len(documents), 'document')}")
    return documents


def _answer(conversion: Conversion, output: str, terminal: Terminal) -> None:
    if output == "json":
        items = list(conversion.objects)
        terminal.answer_json({"apiVersion": "v1", "kind": "List", "items": items})
        return
    text = write_products(conversion.products)
    if not terminal.out.can_write(text):
        text = to_yaml(conversion.objects, in_ascii=True)
    terminal.answer_text(text)


def _report(conversion: Conversion) -> dict[str, Any]:
    """Write the outcome of each field as JSON, without the objects."""
    return {
        "isLossless": conversion.is_lossless,
        "converted": conversion.total.converted,
        "unchanged": conversion.total.unchanged,
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
    change = Span(note.change.name.ljust(len(FieldChange.RENAMED.name)), _STYLES[note.change])
    path = (Span(note.path, Style.NAME), Span(": ")) if note.path else ()
    return line("  ", change, "  ", *path, note.text)


def _repeated(conversion: Conversion) -> list[Line]:
    """Name the objects that occur more than once: `kubectl apply` would keep one of each."""
    names = conversion.repeated
    if not names:
        return []
    text = f"{few_of(names, _NAMES_SHOWN)}: more than one object has this name"
    hint = "convert and apply the folder of each cluster on its own"
    return [
        line(Span("note: ", Style.CARE), text),
        line(Span("  hint: ", Style.QUIET), hint),
    ]


def _files(files: Sequence[FileCount]) -> list[Line]:
    """Count the outcomes of each file, if there are several files."""
    shown = [each for each in files if each.converted or each.failed or each.changes]
    if len(files) < _TABLE_MIN or not shown:
        return []
    folders = zip(*(PurePath(each.file).parts[:-1] for each in files), strict=False)
    above = sum(1 for _ in takewhile(lambda names: len(set(names)) == 1, folders))
    rows = [_row(str(PurePath(*PurePath(each.file).parts[above:])), each) for each in shown]
    others = len(files) - len(rows)
    more = f"{count_of(others, 'other file')} without anything to convert"
    return [*table(_COLUMNS, rows), *([line(more)] if others else [])]


def _row(file: str, count: FileCount) -> list[Line]:
    shown = file if len(file) <= _FILE_WIDTH else f"…{file[1 - _FILE_WIDTH :]}"
    numbers = [count.read, count.converted, count.unchanged, count.failed]
    numbers += [count.changes.get(each, 0) for each in FieldChange]
    return [line(Span(shown, Style.NAME)), *(line(str(each)) for each in numbers)]


def _summary(conversion: Conversion) -> Line:
    total = conversion.total
    fields = ", ".join(f"{total.changes.get(each, 0)} {each.value}" for each in FieldChange)
    return line(
        f"{count_of(total.read, 'object')} read: {total.converted} converted, "
        f"{total.unchanged} unchanged, {total.failed} failed; fields: {fields}"
    )
