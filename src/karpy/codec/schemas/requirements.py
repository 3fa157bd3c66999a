"""Requirements as NodePools, NodeClaims and NodeOverlays have them."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from karpy.codec.schemas.labelrules import CLAIM_KEY, OVERLAY_KEY, POOL_KEY
from karpy.codec.schemas.wire import LABEL_KEY_PATTERN, SchemaRule, Wire, about, list_type, rules

_KEY_LENGTH: Final = 316
_REQUIREMENTS_MAX: Final = 100
_MIN_VALUES_MAX: Final = 50

_Key = Annotated[str, Meta(max_length=_KEY_LENGTH, pattern=LABEL_KEY_PATTERN)]
_Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
_Values = Annotated[list[str], list_type("atomic")]

_ABOUT_KEY: Final = about("The label that the requirement is about.")
_ABOUT_OPERATOR: Final = about(
    "How the label relates to the values. Gt, Lt, Gte and Lte compare with one whole number."
)
_ABOUT_VALUES: Final = about(
    "What the label is compared with: at least one value for In, exactly one for comparisons, "
    "none for Exists and DoesNotExist."
)
_ABOUT_MIN_VALUES: Final = about(
    "At least so many different values of the label must remain to choose from at launch."
)
_MinValues = Annotated[int, Meta(ge=1, le=_MIN_VALUES_MAX)]


class PoolRequirement(Wire, frozen=True):
    """A condition on the labels of nodes."""

    key: Annotated[_Key, _ABOUT_KEY, rules(*POOL_KEY)]
    operator: Annotated[_Operator, _ABOUT_OPERATOR]
    values: Annotated[_Values | None, _ABOUT_VALUES] = None
    min_values: Annotated[_MinValues | None, _ABOUT_MIN_VALUES] = None


class ClaimRequirement(Wire, frozen=True):
    """A condition on the labels of a node."""

    key: Annotated[_Key, _ABOUT_KEY, rules(*CLAIM_KEY)]
    operator: Annotated[_Operator, _ABOUT_OPERATOR]
    values: Annotated[_Values | None, _ABOUT_VALUES] = None
    min_values: Annotated[_MinValues | None, _ABOUT_MIN_VALUES] = None


class OverlayRequirement(Wire, frozen=True):
    """A condition on the labels of instance types and their offerings."""

    key: Annotated[_Key, _ABOUT_KEY, rules(*OVERLAY_KEY)]
    operator: Annotated[_Operator, _ABOUT_OPERATOR]
    values: Annotated[_Values | None, _ABOUT_VALUES] = None


def _needs_values(operator: str) -> SchemaRule:
    return SchemaRule(
        f"self.all(x, x.operator != '{operator}' || (has(x.values) && x.values.size() != 0))",
        f"requirements with operator '{operator}' must have a value defined",
    )


_COMPARISON: Final = SchemaRule(
    "self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || "
    "(has(x.values) && x.values.size() == 1 && int(x.values[0]) >= 0))",
    "requirements with operator 'Gt', 'Lt', 'Gte' or 'Lte' must have one value, "
    "a whole number that is not negative",
)
_ENOUGH_VALUES: Final = SchemaRule(
    "self.all(x, x.operator != 'In' || !has(x.minValues) || "
    "(has(x.values) && x.values.size() >= x.minValues))",
    "requirements with operator 'In' must have at least 'minValues' values",
)
_BOUNDS: Final = Meta(max_length=_REQUIREMENTS_MAX)

PoolRequirements = Annotated[
    list[PoolRequirement],
    _BOUNDS,
    list_type("atomic"),
    rules(_needs_values("In"), _COMPARISON, _ENOUGH_VALUES),
]
ClaimRequirements = Annotated[
    list[ClaimRequirement],
    _BOUNDS,
    list_type("atomic"),
    rules(_needs_values("In"), _COMPARISON, _ENOUGH_VALUES),
]
OverlayRequirements = Annotated[
    list[OverlayRequirement],
    _BOUNDS,
    list_type("atomic"),
    rules(_needs_values("In"), _needs_values("NotIn"), _COMPARISON),
]
