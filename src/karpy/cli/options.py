"""Options that several commands share, and their conversion to values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Annotated, Final, Literal, TypeAlias

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from karpy.adapters.clouds.kwok.repairs import REPAIR_POLICIES
from karpy.cli.terminal import Terminal
from karpy.model.nodes import RepairRules
from karpy.model.settings import (
    Gates,
    MinValuesPolicy,
    Options,
    Packing,
    PreferencePolicy,
    Settings,
)
from karpy.wiring.flags import GATE_FIELDS, Unfit, read_gates

DONE: Final = 0
FAILED: Final = 1
MISUSED: Final = 2
ANSWERED_NO: Final = 3
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

STDIN: Final = "/dev/stdin"
"""The path that replaces the argument `-`."""

Output: TypeAlias = Annotated[
    Literal["text", "json"], Parameter(help="Answer for people or for machines.")
]
Injected: TypeAlias = Annotated[Terminal, Parameter(parse=False)]
"""The terminal, which `main` passes to each command."""
_CLOSED: Final = Gates()


def moment(_kind: object, tokens: Sequence[Token]) -> datetime:
    """Read a time, in UTC unless it has an offset."""
    try:
        time = datetime.fromisoformat(tokens[0].value)
    except ValueError:
        msg = f'"{tokens[0].value}" is no time such as 2026-03-01T12:00:00Z'
        raise ValueError(msg) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _gates(_kind: object, tokens: Sequence[Token]) -> Gates:
    try:
        named = read_gates(tokens[0].value)
    except Unfit as error:
        msg = f"it {error.problem}; {error.hint}"
        raise ValueError(msg) from None
    for name in sorted(named.keys() - GATE_FIELDS.keys()):
        close = get_close_matches(name, GATE_FIELDS, 1)
        meant = f"; did you mean {close[0]}?" if close else ""
        msg = f"there is no feature gate `{name}`{meant}"
        raise ValueError(msg)
    return Gates(**{GATE_FIELDS[name]: value for name, value in named.items()})


@Parameter(name="*")
@dataclass(frozen=True)
class Question:
    """What to decide on besides the manifests."""

    catalog: Annotated[
        str | None,
        Parameter(
            help="Instance types and prices: `kwok`, `ec2:REGION`, or a JSON file. [default: as the"
            " node classes of the NodePools say, else kwok]",
            metavar="NAME|FILE",
        ),
    ] = None
    preference_policy: Annotated[
        Literal["Respect", "Ignore"],
        Parameter(help="Whether preferences of pods count as long as they can be met."),
    ] = "Respect"
    min_values_policy: Annotated[
        Literal["Strict", "BestEffort"],
        Parameter(help="Whether minValues must hold or may be lowered to what there is."),
    ] = "Strict"
    packing: Annotated[
        Literal["Karpenter", "Cheapest"],
        Parameter(help="Whether to plan as Karpenter would, or cheaper if that will do."),
    ] = "Karpenter"
    now: Annotated[
        datetime | None,
        Parameter(
            help="Decide as of this time (ISO 8601). [default: now]",
            metavar="TIME",
            converter=moment,
        ),
    ] = None
    timeout: Annotated[
        float | None,
        Parameter(
            help="Stop deciding after so long and show what there is.",
            metavar="SECONDS",
            validator=Number(gt=0),
        ),
    ] = None

    feature_gates: Annotated[
        Gates,
        Parameter(
            help="Feature gates as the operator has them. [default: Karpenter's]",
            metavar="NAME=BOOL,...",
            converter=_gates,
            show_default=False,
            parse=True,
        ),
    ] = _CLOSED

    @property
    def settings(self) -> Settings:
        return Options(
            preference_policy=PreferencePolicy(self.preference_policy),
            min_values_policy=MinValuesPolicy(self.min_values_policy),
            packing=Packing(self.packing),
            gates=self.feature_gates,
        ).settings()

    @property
    def repair(self) -> RepairRules:
        """Return the rules for unhealthy nodes; none while the feature gate NodeRepair is off."""
        return RepairRules(REPAIR_POLICIES if self.feature_gates.node_repair else ())


USUAL: Final = Question()


@Parameter(name="*")
@dataclass(frozen=True)
class ClusterAccess:
    """Which cluster to look at where no files are given."""

    kubeconfig: Annotated[
        str | None,
        Parameter(
            help="Look at the cluster of this kubeconfig. [default: as kubectl does]",
            metavar="FILE",
        ),
    ] = None
    context: Annotated[
        str | None, Parameter(help="The context of the kubeconfig.", metavar="NAME")
    ] = None

    @property
    def is_given(self) -> bool:
        return self.kubeconfig is not None or self.context is not None


NEAREST: Final = ClusterAccess()
