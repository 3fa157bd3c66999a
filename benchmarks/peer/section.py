"""The section of docs/benchmarks.md that compares Karpy with Karpenter."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from msgspec import Struct

from benchmarks.machine import describe_machine
from benchmarks.peer.measuring import KARPENTER, KARPY, Run, ScaleIn
from benchmarks.peer.scenarios import SCALE_IN_PERCENT, SCENARIOS
from karpy import __version__
from karpy.adapters.controlplane.bundles import CONTROL_PLANE, PEER

TITLE: Final = "## Beside Karpenter on a real control plane"
_SHARE_OF_TIME_MAX: Final = 0.5
_SHARE_OF_PRICE_MAX: Final = 1.0
_SCALE_IN_TIME_MAX: Final = 0.6
_SCALE_IN_CPU_MAX: Final = 0.4
_SCALE_IN_PRICE_MAX: Final = 1.03
_TABLE: Final = (
    "| scenario | | all pods run after | CPU time | peak memory | nodes | $/h |",
    "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
)
_SCALE_IN_TABLE: Final = (
    "| scale-in | | nodes at rest after | CPU time | nodes | removed | replacements | $/h |",
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
)

_RULES: Final = (
    "Both have the same environment, NodePool and CRDs. `basic` are two Deployments, `mix` thirty:",
    "spread over zones and hosts, anti-affine, pinned. Time runs from the first pod on; CPU time",
    "and memory are those of the operator's process tree; the price is that of all nodes once",
    "every pod runs. The last line of each scenario is Karpy's share of Karpenter's figure, and",
    "what it may be at most. Absolute times differ between machines: compare within one run.",
)
_SCALE_IN_RULES: Final = (
    f"Once all pods run, every Deployment is scaled to {SCALE_IN_PERCENT} %. The nodes are at rest",
    "when they have not changed for 90 seconds, which do not count; CPU time includes them.",
)


class Share(Struct, frozen=True):
    """A figure of Karpy as a share of the peer's, with its limit."""

    what: str
    value: float | None
    """None if a run did not finish, so that there is no ratio."""
    most: float
    is_bound: bool = False
    """Whether the share is an upper bound: the peer did not finish in time."""

    @property
    def is_met(self) -> bool:
        return self.value is None or round(self.value, 2) <= self.most

    def __str__(self) -> str:
        """Return the share as a table cell."""
        if self.value is None:
            return ""
        text = f"{'< ' if self.is_bound else ''}{self.value:.2f} (≤ {self.most})"
        return text if self.is_met else f"**{text}**"


class Pair(Struct, frozen=True):
    """The runs of both operators on one scenario."""

    theirs: Run
    ours: Run
    rounds: int = 1
    """How often each operator ran; with more than one round, figures are medians."""

    def shares(self) -> tuple[Share, ...]:
        """Compare time, CPU, memory and price."""
        scenario = SCENARIOS[self.ours.scenario]
        is_timed, are_both_done = scenario.is_timed, self._are_both_done
        most = _SHARE_OF_TIME_MAX if is_timed else float("inf")
        seconds = _ratio(self.ours.seconds, self.theirs.seconds)
        price = _ratio(self.ours.dollars_per_hour, self.theirs.dollars_per_hour)
        is_bound = not self.theirs.is_complete
        return (
            Share("time", seconds if self.ours.is_complete else None, most, is_bound),
            Share("CPU time", _ratio(self.ours.cpu_s, self.theirs.cpu_s), most, is_bound),
            Share("memory", _ratio(self.ours.peak_mib, self.theirs.peak_mib), self._memory_max),
            Share("price", price if are_both_done else None, _SHARE_OF_PRICE_MAX),
        )

    def scale_in_shares(self) -> tuple[Share, ...]:
        """Compare time, CPU and price of the scale-in, if both operators have one."""
        theirs, ours = self.theirs.scale_in, self.ours.scale_in
        if theirs is None or ours is None:
            return ()
        are_done = ours.is_complete and theirs.is_complete
        is_bound = not theirs.is_complete
        seconds = _ratio(ours.seconds, theirs.seconds) if ours.is_complete else None
        price = _ratio(ours.dollars_per_hour, theirs.dollars_per_hour) if are_done else None
        return (
            Share("time of the scale-in", seconds, _SCALE_IN_TIME_MAX, is_bound),
            Share(
                "CPU time of the scale-in",
                _ratio(ours.cpu_s, theirs.cpu_s),
                _SCALE_IN_CPU_MAX,
                is_bound,
            ),
            Share("price after the scale-in", price, _SCALE_IN_PRICE_MAX),
        )

    @property
    def missed(self) -> list[str]:
        """Return the shares above their limits, as texts."""
        done, last = self.ours.is_complete, self.ours.scale_in
        unfinished = [] if done else ["time"]
        unfinished += ["time of the scale-in"] if last and not last.is_complete else []
        shares = (*self.shares(), *self.scale_in_shares())
        return unfinished + [share.what for share in shares if not share.is_met]

    @property
    def _are_both_done(self) -> bool:
        return self.ours.is_complete and self.theirs.is_complete

    @property
    def _memory_max(self) -> float:
        return SCENARIOS[self.ours.scenario].peak_share_max


def _ratio(ours: float, theirs: float) -> float | None:
    return ours / theirs if theirs else None


def pairs(runs: Sequence[Run]) -> list[Pair]:
    """Pair the runs of each scenario; of several rounds the median counts."""
    names = dict.fromkeys(run.scenario for run in runs)
    found = []
    for name in names:
        theirs = [run for run in runs if run.scenario == name and run.operator == KARPENTER]
        ours = [run for run in runs if run.scenario == name and run.operator == KARPY]
        if theirs and ours:
            rounds = min(len(theirs), len(ours))
            found.append(Pair(_middle(theirs), _middle(ours), rounds))
    return found


def _middle(runs: Sequence[Run]) -> Run:
    """Return the median of each figure; one unfinished round makes the result unfinished."""
    worst = min(runs, key=lambda run: run.ready)
    return Run(
        worst.operator,
        worst.scenario,
        pods=worst.pods,
        ready=worst.ready,
        seconds=median(run.seconds for run in runs),
        first_claim_s=worst.first_claim_s,
        half_s=worst.half_s,
        cpu_s=median(run.cpu_s for run in runs),
        peak_mib=median(run.peak_mib for run in runs),
        idle_mib=median(run.idle_mib for run in runs),
        nodes=round(median(run.nodes for run in runs)),
        dollars_per_hour=median(run.dollars_per_hour for run in runs),
        scale_in=_middle_scale_in([run.scale_in for run in runs if run.scale_in is not None]),
    )


def _middle_scale_in(found: Sequence[ScaleIn]) -> ScaleIn | None:
    if not found:
        return None
    worst = min(found, key=lambda each: (each.is_complete, each.ready))
    return ScaleIn(
        pods=worst.pods,
        ready=worst.ready,
        seconds=median(each.seconds for each in found),
        cpu_s=median(each.cpu_s for each in found),
        nodes=round(median(each.nodes for each in found)),
        dollars_per_hour=median(each.dollars_per_hour for each in found),
        removed=round(median(each.removed for each in found)),
        replacements=round(median(each.replacements for each in found)),
        is_settled=worst.is_settled,
    )


def section_text(found: Sequence[Pair]) -> str:
    """Return the section."""
    lines = [
        TITLE,
        "",
        f"Karpy {__version__} and Karpenter {PEER.version} (its own KWOK build) by turns, each",
        f"time on a fresh control plane (Kubernetes {CONTROL_PLANE.version}) with real KWOK for",
        f"kubelets; of several rounds, medians. {describe_machine()}.",
        *_RULES,
        "",
        *_TABLE,
        *(row for pair in found for row in _rows(pair)),
        "",
        *_scale_in_lines(found),
        "```console",
        "$ make bench-peer",
        "```",
    ]
    return "\n".join(lines)


def _rows(pair: Pair) -> Iterator[str]:
    for name, run in ((pair.theirs.scenario, pair.theirs), ("", pair.ours)):
        rounds = f", {pair.rounds} rounds" if pair.rounds > 1 else ""
        shown = f" `{name}`, {run.pods:,} pods{rounds}" if name else ""
        seconds = f"{run.seconds:.1f} s"
        if not run.is_complete:
            seconds = f"not in {run.seconds:.0f} s: {run.ready:,} run"
        yield (
            f"|{shown} | {run.operator} | {seconds} | {run.cpu_s:.1f} s | {run.peak_mib:.0f} MiB "
            f"| {run.nodes} | {run.dollars_per_hour:.2f} |"
        )
    time, cpu, memory, price = pair.shares()
    yield f"| | share | {_plain(time)} | {_plain(cpu)} | {memory} | | {price} |"


def _scale_in_lines(found: Sequence[Pair]) -> list[str]:
    rows = [row for pair in found for row in _scale_in_rows(pair)]
    return [*_SCALE_IN_RULES, "", *_SCALE_IN_TABLE, *rows, ""] if rows else []


def _scale_in_rows(pair: Pair) -> Iterator[str]:
    shares = pair.scale_in_shares()
    if not shares:
        return
    for name, run in ((pair.theirs.scenario, pair.theirs), ("", pair.ours)):
        done = run.scale_in
        assert done is not None
        shown = f" `{name}`, {done.pods:,} pods left" if name else ""
        seconds = f"{done.seconds:.1f} s"
        if not done.is_complete:
            seconds = f"not in {done.seconds:.0f} s: {done.ready:,} run"
        yield (
            f"|{shown} | {run.operator} | {seconds} | {done.cpu_s:.1f} s | {done.nodes} "
            f"| {done.removed} | {done.replacements} | {done.dollars_per_hour:.2f} |"
        )
    time, cpu, price = shares
    yield f"| | share | {time} | {cpu} | | | | {price} |"


def _plain(share: Share) -> str:
    """Return a share as a table cell without a limit."""
    return str(share).replace(" (≤ inf)", "")
