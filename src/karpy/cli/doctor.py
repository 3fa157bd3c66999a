"""`karpy doctor`: the problems of a cluster, and how to mend them."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter
from msgspec.structs import replace

from karpy.adapters.clock import WallClock
from karpy.adapters.kube.connection import Connection
from karpy.cli.live import access_of
from karpy.cli.options import ANSWERED_NO, DONE, NEAREST, ClusterAccess, Injected, Output
from karpy.cli.terminal import Line, Span, Style, Terminal, line
from karpy.core.doctor import CheckResult, Facts, Judgement, examine, is_fit
from karpy.wiring.checkup import NamedSettings, check_up

_STYLES: Final = {
    CheckResult.GREEN: Style.GOOD,
    CheckResult.YELLOW: Style.CARE,
    CheckResult.RED: Style.BAD,
}
_WORDS: Final = {CheckResult.GREEN: "ok", CheckResult.YELLOW: "care", CheckResult.RED: "bad"}
_SHOWN: Final = 5
_GAP: Final = 2


@Parameter(name="*")
@dataclass(frozen=True)
class Installation:
    """Where Karpy is installed, or will be."""

    namespace: Annotated[
        str, Parameter(help="Where the operator is installed.", metavar="NAME", alias="-n")
    ] = "karpenter"
    provider: Annotated[
        Literal["aws", "kwok"] | None,
        Parameter(help="The cloud. [default: as the Deployment says, else kwok]"),
    ] = None
    cluster_name: Annotated[
        str, Parameter(help="AWS: the EKS cluster, to ask EKS about it.", metavar="NAME")
    ] = ""
    interruption_queue: Annotated[
        str, Parameter(help="AWS: the SQS queue. [default: as the Deployment says]", metavar="NAME")
    ] = ""

    @property
    def asked(self) -> NamedSettings:
        return NamedSettings(
            self.namespace, self.provider or "", self.interruption_queue, self.cluster_name
        )


USUAL_PLACE: Final = Installation()


def doctor(
    *,
    installation: Installation = USUAL_PLACE,
    reach: ClusterAccess = NEAREST,
    output: Output = "text",
    terminal: Injected,
) -> int:
    """
    Check a cluster before and after Karpy is installed, and say what to do about what is wrong.

    For example:

        $ karpy doctor
        $ karpy doctor --provider aws --interruption-queue shop
        $ kubectl exec -n karpenter deployment/karpenter -- karpy doctor --output json

    It looks at versions, definitions, the rights of the operator's account, other autoscalers,
    where the operator runs, NodePools, node classes, workloads and clocks; with --provider aws
    also at the credentials of this machine, what they may do, and the queue. Nothing is changed:
    rights are checked by access reviews, and the time of the API server by a dry run.
    Exits with 3 if anything is red.
    """
    facts = asyncio.run(_look(reach, installation))
    judgements = examine(facts)
    is_good = is_fit(judgements)
    if output == "json":
        terminal.answer_json(_answer(facts, judgements, is_good=is_good))
    else:
        _report(judgements, terminal)
    return DONE if is_good else ANSWERED_NO


async def _look(reach: ClusterAccess, installation: Installation) -> Facts:
    asked = installation.asked
    async with Connection(access_of(reach)) as connection:
        facts = await check_up(connection.objects, connection.version, WallClock(), asked)
    if installation.provider == "aws":
        # aiobotocore comes with an extra that other providers do not need.
        ask_account = import_module("karpy.wiring.checkupaws").ask_account
        facts = replace(facts, cloud=await ask_account(asked, facts.queue))
    return facts


def _answer(facts: Facts, judgements: Sequence[Judgement], *, is_good: bool) -> dict[str, Any]:
    return {
        "fit": is_good,
        "namespace": facts.namespace,
        "provider": facts.provider,
        "checks": [
            {
                "check": each.check,
                "health": each.health.value,
                "text": each.text,
                "hint": each.hint,
                "objects": list(each.objects),
            }
            for each in judgements
        ],
    }


def _report(judgements: Sequence[Judgement], terminal: Terminal) -> None:
    width = max(len(each.check) for each in judgements) + _GAP
    terminal.answer(part for each in judgements for part in _lines(each, width))
    red = sum(each.health is CheckResult.RED for each in judgements)
    yellow = sum(each.health is CheckResult.YELLOW for each in judgements)
    green = len(judgements) - red - yellow
    terminal.answer([line(), line(f"{green} green, {yellow} yellow, {red} red")])


def _lines(judgement: Judgement, width: int) -> Iterator[Line]:
    mark = Span(f"{_WORDS[judgement.health]:4}  ", _STYLES[judgement.health])
    yield line(mark, Span(f"{judgement.check:{width}}", Style.STRONG), judgement.text)
    indent = " " * (len(mark.text) + width)
    for each in judgement.objects[:_SHOWN]:
        yield line(indent, Span(each, Style.NAME))
    more = len(judgement.objects) - _SHOWN
    if more > 0:
        yield line(indent, Span(f"and {more} more", Style.QUIET))
    if judgement.hint:
        yield line(indent, Span("hint: ", Style.QUIET), judgement.hint)
