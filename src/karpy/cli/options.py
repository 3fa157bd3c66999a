"""Options that several commands share, and how they become values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, TypeAlias

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from karpy.cli.terminal import Terminal
from karpy.model.settings import MinValuesPolicy, Packing, PreferencePolicy, Settings

DONE: Final = 0
FAILED: Final = 1
MISUSED: Final = 2
ANSWERED_NO: Final = 3
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

STDIN: Final = "/dev/stdin"
"""What `-` stands for."""

Output: TypeAlias = Annotated[
    Literal["text", "json"], Parameter(help="Answer for people or for machines.")
]
Injected: TypeAlias = Annotated[Terminal, Parameter(parse=False)]
"""The terminal; `main` gives it, not the user."""


def _moment(_kind: object, tokens: Sequence[Token]) -> datetime:
    try:
        time = datetime.fromisoformat(tokens[0].value)
    except ValueError:
        msg = f'"{tokens[0].value}" is no time such as 2026-03-01T12:00:00Z'
        raise ValueError(msg) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


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
            converter=_moment,
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

    @property
    def settings(self) -> Settings:
        return Settings(
            preference_policy=PreferencePolicy(self.preference_policy),
            min_values_policy=MinValuesPolicy(self.min_values_policy),
            packing=Packing(self.packing),
        )


USUAL: Final = Question()
