"""The table of workloads: the requests of their pods, and the number of nodes and zones."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from karpy.cli.launchtext import zones_of
from karpy.cli.tables import Align, Column, count_of, cut, heading, table, table_width
from karpy.cli.terminal import Line, Span, Style, line
from karpy.core.explain import asks_of
from karpy.model.pods import Pod
from karpy.model.resources import CPU, MEMORY, format_quantity
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict

_COLUMNS: Final = (
    Column("workload"),
    Column("pods", Align.RIGHT),
    Column("cpu", Align.RIGHT),
    Column("memory", Align.RIGHT),
    Column("constraints"),
    Column("goes to"),
)
_CONSTRAINTS_AT: Final = 4
_DOMAIN: Final = re.compile(r"[\w.-]+/(?=[\w.-]+ (?:In|NotIn|Exists|DoesNotExist)\b)")
"""The prefix of a label key, which a narrow table omits."""


def workload_lines(snapshot: Snapshot, verdict: Verdict, width: int) -> list[Line]:
    """Write a row for each workload; pods belong to the workload that their name begins with."""
    hosts = {pod: launch for launch in verdict.launches for pod in launch.pods}
    workloads: dict[str, list[Pod]] = {}
    for pod in snapshot.pods:
        workloads.setdefault(_workload_of(pod), []).append(pod)
    rows = [_cells(name, pods, hosts) for name, pods in workloads.items()]
    bare = [[*row[:_CONSTRAINTS_AT], line(""), row[-1]] for row in rows]
    room = width - table_width(_COLUMNS, bare) + len(_COLUMNS[_CONSTRAINTS_AT].title)
    for row, (name, pods) in zip(rows, workloads.items(), strict=True):
        row[_CONSTRAINTS_AT] = line(cut(_constraints(name, pods[0]), room))
    return [heading("Workloads"), *table(_COLUMNS, rows)]


def _workload_of(pod: Pod) -> str:
    stem, _, number = pod.key.rpartition("-")
    return stem if stem and number.isdecimal() else pod.key


def _cells(workload: str, pods: Sequence[Pod], hosts: Mapping[str, Launch]) -> list[Line]:
    launches = {each.name: each for pod in pods if (each := hosts.get(pod.key))}
    requests = pods[0].requests
    return [
        line(Span(workload, Style.NAME)),
        line(f"{len(pods):,}"),
        *(line(format_quantity(requests.get(name, 0), name)) for name in (CPU, MEMORY)),
        line(""),
        line(_places(list(launches.values()))),
    ]


def _constraints(name: str, pod: Pod) -> str:
    text = "; ".join(asks_of(pod)[1:])
    return _DOMAIN.sub("", text).replace(pod.name, name.rpartition("/")[2])


def _places(launches: Sequence[Launch]) -> str:
    if not launches:
        return "nowhere"
    zones = {zone for launch in launches for zone in zones_of(launch)}
    where = count_of(len(zones), "zone") if len(zones) > 1 else min(zones, default="any zone")
    return f"{count_of(len(launches), 'node')}, {where}"
