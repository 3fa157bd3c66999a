"""Conditions in the status of custom resources."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from karpy.codec.schemas.wire import Time, Wire, about, list_type, number_format

_MESSAGE_LENGTH: Final = 32_768
_REASON_LENGTH: Final = 1024
_TYPE_LENGTH: Final = 316
_REASON: Final = r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_TYPE: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)

_Since = Annotated[Time, about("Since when the status is what it is.")]
_Status = Annotated[
    Literal["True", "False", "Unknown"], about("Whether the condition holds, as far as is known.")
]
_Type = Annotated[
    str, Meta(max_length=_TYPE_LENGTH, pattern=_TYPE), about("The name of the condition.")
]
_Message = Annotated[str, Meta(max_length=_MESSAGE_LENGTH)]
_Generation = Annotated[int, number_format("int64"), Meta(ge=0)]

_ABOUT_MESSAGE: Final = about("The reason in a sentence, for people.")
_ABOUT_REASON: Final = about("Why the status is what it is, in one word, for programs.")
_ABOUT_GENERATION: Final = about("The generation of the object that the condition speaks of.")


class Condition(Wire, frozen=True):
    """Something that is so or not, and since when."""

    last_transition_time: _Since
    message: Annotated[_Message, _ABOUT_MESSAGE]
    reason: Annotated[
        str, Meta(max_length=_REASON_LENGTH, min_length=1, pattern=f"^{_REASON}$"), _ABOUT_REASON
    ]
    status: _Status
    type: _Type
    observed_generation: Annotated[_Generation | None, _ABOUT_GENERATION] = None


class ClaimCondition(Wire, frozen=True):
    """Something that is so or not, and since when; it need not say why."""

    last_transition_time: _Since
    status: _Status
    type: _Type
    message: Annotated[_Message | None, _ABOUT_MESSAGE] = None
    observed_generation: Annotated[_Generation | None, _ABOUT_GENERATION] = None
    reason: Annotated[
        Annotated[str, Meta(max_length=_REASON_LENGTH, pattern=f"^({_REASON}|)$")] | None,
        _ABOUT_REASON,
    ] = None


_BY_TYPE: Final = list_type("map", "type")
_ABOUT_ALL: Final = about("What is known about the object, one entry per question.")

Conditions = Annotated[list[Condition], _BY_TYPE, _ABOUT_ALL]
ClaimConditions = Annotated[list[ClaimCondition], _BY_TYPE, _ABOUT_ALL]
PlainConditions = Annotated[list[Condition], _ABOUT_ALL]
"""For kinds whose list of conditions a server-side apply replaces as a whole."""
