"""`karpy instances`: instance types that meet given criteria, and what they cost."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from textwrap import wrap
from typing import Annotated, Any, Final, Literal, TypeAlias

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from karpy.adapters.clouds.aws.builtin import builtin_region_of
from karpy.cli.catalogs import find_catalog, usual_catalog
from karpy.cli.ec2supply import EC2_CLASSES, Needs, ec2_supply
from karpy.cli.findings import findings_answer, report_findings
from karpy.cli.inputs import Sources, read_sources, read_text
from karpy.cli.options import ANSWERED_NO, DONE, FAILED, Injected
from karpy.cli.tables import Align, Column, count_of, few_of, table
from karpy.cli.terminal import Line, Span, Style, line
from karpy.codec.findings import Finding, is_partial, of_problem
from karpy.codec.manifests import Reading, read_manifests
from karpy.codec.narrowing import Supply
from karpy.codec.verdicts import dollars, requirement_to_entries
from karpy.core.instancechoice import Criteria, InstanceChoice, NumberRange, choose, requirements_of
from karpy.errors import ObjectNotFound
from karpy.model.instances import Catalog, InstanceType, micros
from karpy.model.labels import ON_DEMAND, SPOT
from karpy.model.pools import NodePool
from karpy.model.requirements import Operator, Requirement, collect, from_labels
from karpy.model.resources import MEMORY, PODS, format_quantity, parse_quantity
from karpy.model.settings import Settings

_ROWS_SHOWN: Final = 20
_NAMES_SHOWN: Final = 10
_WIDTH: Final = 100
_MIB: Final = 2**20
_MIB_PER_GIB: Final = 1024
_COLUMNS: Final = (
    Column("instance type"),
    Column("vcpu", Align.RIGHT),
    Column("memory", Align.RIGHT),
    Column("gpu"),
    Column("arch"),
    Column("pods", Align.RIGHT),
    Column("on-demand $/h", Align.RIGHT),
    Column("spot $/h", Align.RIGHT),
)
_BOUNDS: Final = {
    Operator.GTE.value: (Operator.GT.value, -1),
    Operator.LTE.value: (Operator.LT.value, 1),
}
"""Operators that older versions of Karpenter do not have, with the equivalent older one."""


def _span(
    read: Callable[[str], int], example: str
) -> Callable[[object, Sequence[Token]], NumberRange]:
    """Read `4`, `4-8` or `4-`."""

    def convert(_kind: object, tokens: Sequence[Token]) -> NumberRange:
        text = tokens[0].value
        least, dash, most = text.partition("-")
        try:
            first = read(least)
            last = (read(most) if most else None) if dash else first
        except ValueError:
            msg = f'"{text}" is no range such as {example}'
            raise ValueError(msg) from None
        return NumberRange(first, last)

    return convert


def _mib(text: str) -> int:
    """Read gibibytes, or a quantity with its unit."""
    if text.isdecimal():
        return int(text) * _MIB_PER_GIB
    return parse_quantity(text, MEMORY) // _MIB


def _names(_kind: object, tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(each for token in tokens for each in token.value.split(",") if each)


_Numbers: TypeAlias = Callable[[object, Sequence[Token]], NumberRange]
_COUNT: Final[_Numbers] = _span(int, "4, 4-8 or 4-")
_MEMORY: Final[_Numbers] = _span(_mib, "16, 16-64 or 512Mi-2Gi")
_Names: TypeAlias = tuple[str, ...]


def _range(text: str, converter: _Numbers) -> Parameter:
    return Parameter(help=text, metavar="RANGE", converter=converter)


def _several(text: str) -> Parameter:
    return Parameter(help=text, metavar="NAME", converter=_names, negative="", show_default=False)


@Parameter(name="*")
@dataclass(frozen=True)
class Selection:
    """The criteria for instance types, and the catalog to choose from."""

    vcpus: Annotated[NumberRange | None, _range("How many vCPUs: 4, 4-8 or 4-.", _COUNT)] = None
    memory: Annotated[
        NumberRange | None,
        _range("How much memory, in GiB or with a unit: 16, 16-64, 512Mi-2Gi.", _MEMORY),
    ] = None
    gpus: Annotated[NumberRange | None, _range("How many GPUs: 1, 1- or 0.", _COUNT)] = None
    generation: Annotated[NumberRange | None, _range("Which generation: 7, 5-7 or 6-.", _COUNT)] = (
        None
    )
    gpu_name: Annotated[_Names, _several("Which GPU, as `l4`.")] = ()
    arch: Annotated[_Names, _several("`amd64` or `arm64`.")] = ()
    category: Annotated[_Names, _several("Which categories, as `c,m,r`.")] = ()
    family: Annotated[_Names, _several("Which families, as `m7g,m7i`.")] = ()
    zone: Annotated[_Names, _several("Where they must be sold; the region follows from it.")] = ()
    capacity_type: Annotated[_Names, _several("`on-demand` or `spot`.")] = ()
    max_price: Annotated[
        float | None,
        Parameter(
            help="The most they may cost, in dollars an hour.",
            metavar="DOLLARS",
            validator=Number(gt=0),
        ),
    ] = None
    burstable: Annotated[
        bool | None, Parameter(help="Only those that save up CPU time (t3, t4g), or none of them.")
    ] = None
    pool: Annotated[
        str | None,
        Parameter(help="Which NodePool, if FILES hold several.", metavar="NAME"),
    ] = None
    catalog: Annotated[
        str | None,
        Parameter(
            help="Where to choose from: `ec2:REGION`, `kwok`, or a JSON file. [default: as the"
            " node class of the NodePool says, else ec2]",
            metavar="NAME|FILE",
        ),
    ] = None
    limit: Annotated[
        int | None,
        Parameter(
            help="How many at most, the cheapest. [default: 20 in a table, else all]",
            metavar="N",
            validator=Number(gt=0),
        ),
    ] = None

    def criteria(self, pool: NodePool | None) -> Criteria:
        """Return the criteria together with the requirements of a NodePool."""
        return Criteria(
            vcpus=self.vcpus or NumberRange(),
            memory_mib=self.memory or NumberRange(),
            gpus=self.gpus or NumberRange(),
            generation=self.generation or NumberRange(),
            gpu_names=frozenset(self.gpu_name),
            architectures=frozenset(self.arch),
            categories=frozenset(self.category),
            families=frozenset(self.family),
            zones=frozenset(self.zone),
            capacity_types=frozenset(self.capacity_type),
            price_max=None if self.max_price is None else micros(self.max_price),
            is_burstable=self.burstable,
            pool={} if pool is None else collect(pool.requirements),
            labels={} if pool is None else from_labels(pool.labels),
        )


ANY: Final = Selection()


def instances(
    files: Annotated[
        tuple[str, ...],
        Parameter(
            help="Manifests with a NodePool that the types must suit.",
            negative="",
            show_default=False,
        ),
    ] = (),
    /,
    *,
    selection: Selection = ANY,
    output: Annotated[
        Literal["table", "json", "requirements"],
        Parameter(help="A table, JSON, or requirements to paste into a NodePool."),
    ] = "table",
    terminal: Injected,
) -> int:
    """
    List instance types that meet given criteria, the cheapest first.

    For example:

        $ karpy instances --vcpus 4-8 --memory 16-32 --arch arm64
        $ karpy instances --gpus 1- --zone eu-west-1a --max-price 2
        $ karpy instances nodepool.yaml --generation 6- --output requirements

    Types and prices of EC2 are those of a table that comes with Karpy: no account is needed.
    Exits with 3 if no type will do.
    """
    sources = read_sources(files, terminal.stdin)
    reading = _read(sources)
    chosen = _pool(reading, selection.pool, files)
    supply = _supply(selection, reading)
    findings = (
        *map(of_problem, sources.unreadable),
        *reading.findings_beside(supply.node_classes),
        *supply.findings,
    )
    report_findings(findings, terminal)
    criteria = selection.criteria(chosen)
    types = supply.catalog.types if chosen is None else supply.catalog.types_for(chosen.name)
    found = choose(types, criteria)
    kept = found[: selection.limit or sys.maxsize]
    if output == "json":
        terminal.answer_json(_answer(kept, supply, findings))
    elif output == "requirements":
        is_cut = len(kept) < len(found)
        wanted = requirements_of(criteria, kept, is_cut=is_cut)
        terminal.answer_text(_requirements_text(wanted) if kept else "")
    else:
        terminal.answer(_lines(found, selection.limit or _ROWS_SHOWN, supply))
    if is_partial(findings):
        return FAILED
    return DONE if found else ANSWERED_NO


def _read(sources: Sources) -> Reading:
    return read_manifests(sources.texts, Catalog(), Settings(), datetime.now(UTC))


def _pool(reading: Reading, name: str | None, files: Sequence[str]) -> NodePool | None:
    pools = reading.snapshot.pools
    if name is None and not pools:
        return None
    named = [each for each in pools if name in {None, each.name}]
    if len(named) == 1:
        return named[0]
    known = few_of([each.name for each in pools], _NAMES_SHOWN) or "none, there is no NodePool"
    if name is None:
        kind, name = "single NodePool in", " ".join(files)
        known = f"{known}, with `--pool NAME`"
    else:
        kind = "NodePool"
    raise ObjectNotFound(kind=kind, name=name, known=known)


def _supply(selection: Selection, reading: Reading) -> Supply:
    needs = Needs(reading.snapshot, reading.node_classes)
    if selection.catalog is not None:
        return find_catalog(selection.catalog, read_text)(needs)
    region = next((each for each in map(builtin_region_of, selection.zone) if each), "")
    refs = [each.node_class for each in needs.pools]
    if all((each.group, each.kind) in EC2_CLASSES for each in refs):
        return ec2_supply(region, needs, needs.pools)
    return usual_catalog(needs)


# --- answers -----------------------------------------------------------------------------------


def _lines(found: Sequence[InstanceChoice], limit: int, supply: Supply) -> list[Line]:
    title = f"{supply.name} (estimated prices)" if supply.is_estimate else supply.name
    source = line(Span("From  ", Style.STRONG), f"catalog {title}")
    if not found:
        return [line(Span("No instance type will do", Style.STRONG)), (), source]
    rows = [_row(each) for each in found[:limit]]
    lines = table(_COLUMNS, rows)
    hidden = len(found) - len(rows)
    if hidden:
        lines.append(line(f"and {hidden:,} more (--limit {len(found)})"))
    head = line(Span(f"{count_of(len(found), 'instance type')}, the cheapest first", Style.STRONG))
    return [head, (), *lines, (), source]


def _row(choice: InstanceChoice) -> list[Line]:
    gpus = f"{choice.gpus} {choice.gpu_name}".strip() if choice.gpus else ""
    return [
        line(Span(choice.type.name, Style.NAME)),
        line(str(choice.vcpus)),
        line(format_quantity(choice.memory_mib * _MIB, MEMORY)),
        line(gpus),
        line(choice.architecture),
        line(str(choice.type.allocatable.get(PODS, 0))),
        line(_price(choice.price_as(ON_DEMAND))),
        line(_price(choice.price_as(SPOT))),
    ]


def _price(price: int | None) -> str:
    return "" if price is None else f"{dollars(price):,.4f}"


def _answer(
    kept: Sequence[InstanceChoice], supply: Supply, findings: Sequence[Finding]
) -> dict[str, Any]:
    return {
        "instances": [_instance(each) for each in kept],
        "catalog": {"name": supply.name, "isEstimate": supply.is_estimate},
        "findings": findings_answer(findings),
    }


def _instance(choice: InstanceChoice) -> dict[str, Any]:
    return {
        "name": choice.type.name,
        "vcpus": choice.vcpus,
        "memoryMiB": choice.memory_mib,
        "architecture": choice.architecture,
        "gpus": choice.gpus,
        "gpuName": choice.gpu_name or None,
        "dollarsPerHour": dollars(choice.price),
        "allocatable": _amounts(choice.type),
        "offerings": [
            {
                "zone": each.zone,
                "capacityType": each.capacity_type,
                "dollarsPerHour": dollars(each.price),
            }
            for each in choice.offerings
        ],
    }


def _amounts(kind: InstanceType) -> dict[str, str]:
    amounts = sorted(kind.allocatable.items())
    return {name: format_quantity(amount, name) for name, amount in amounts}


def _requirements_text(requirements: Sequence[Requirement]) -> str:
    """Write requirements as YAML for `spec.template.spec` of a NodePool."""
    lines = ["requirements:"]
    for each in requirements:
        for entry in map(_bounded, requirement_to_entries(each)):
            lines += [f"  - key: {entry['key']}", f"    operator: {entry['operator']}"]
            if "values" in entry:
                values = f"values: {json.dumps(entry['values'])}"
                lines += wrap(
                    values,
                    _WIDTH,
                    initial_indent="    ",
                    subsequent_indent="      ",
                    break_on_hyphens=False,
                )
            if "minValues" in entry:
                lines.append(f"    minValues: {entry['minValues']}")
    return "\n".join([*lines, ""])


def _bounded(entry: dict[str, Any]) -> dict[str, Any]:
    """Write `Gte 4` as `Gt 3`, which every version of Karpenter reads."""
    operator, step = _BOUNDS.get(entry["operator"], (entry["operator"], 0))
    if not step:
        return entry
    return {**entry, "operator": operator, "values": [str(int(entry["values"][0]) + step)]}
