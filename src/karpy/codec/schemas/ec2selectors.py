"""How an EC2NodeClass finds what it launches with: subnets, security groups, images and so on."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from karpy.codec.schemas.wire import SchemaRule, Wire, about, rules

_TERMS_MAX: Final = 30
_TAGS_MAX: Final = 20
_ALIAS_LENGTH: Final = 30
_WINDOWS: Final = ("windows2019", "windows2022", "windows2025")
ALIAS_FAMILIES: Final = ("al2", "al2023", "bottlerocket", *_WINDOWS)

_ABOUT_TAGS: Final = about("Tags that it must have; the value * stands for any.")
_TERMS: Final = Meta(max_length=_TERMS_MAX)
_Tags = Annotated[
    dict[str, str],
    Meta(max_length=_TAGS_MAX),
    rules(
        SchemaRule(
            "self.all(k, k != '' && self[k] != '')", "empty tag keys or values aren't supported"
        )
    ),
]

ReservationId = Annotated[str, Meta(pattern="^cr-[0-9a-z]+$")]
OwnerId = Annotated[str, Meta(pattern="^[0-9]{12}$")]
MatchCriteria = Literal["open", "targeted"]


def _has(*names: str) -> str:
    return " || ".join(f"has(x.{name})" for name in names)


def _quoted(*names: str) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _something(*names: str) -> SchemaRule:
    return SchemaRule(f"self.all(x, {_has(*names)})", f"every term needs one of {_quoted(*names)}")


def _alone(name: str, *others: str) -> SchemaRule:
    return SchemaRule(
        f"!self.exists(x, has(x.{name}) && ({_has(*others)}))",
        f"'{name}' cannot be set together with {_quoted(*others)}",
    )


def _alone_somewhere(name: str, *others: str) -> SchemaRule:
    # Parity: selector terms that say too much, such as an id with tags: as Karpenter, Karpy refuses
    # the object only if every term does so, because manifests rely on that.
    # Differs: an empty list of `capacityReservationSelectorTerms`: Karpenter's rule refuses it;
    # Karpy accepts it, because it means the same as no list.
    return SchemaRule(
        f"self.size() == 0 || !self.all(x, has(x.{name}) && ({_has(*others)}))",
        f"'{name}' cannot be set together with {_quoted(*others)}",
    )


def _not_empty(name: str) -> SchemaRule:
    return SchemaRule("self.size() != 0", f"{name} cannot be empty")


class SubnetTerm(Wire, frozen=True):
    """A way to find subnets; a subnet that any term finds is taken."""

    id: Annotated[
        Annotated[str, Meta(pattern="subnet-[0-9a-z]+")] | None, about("The id of a subnet.")
    ] = None
    tags: Annotated[_Tags | None, _ABOUT_TAGS] = None


class SecurityGroupTerm(Wire, frozen=True):
    """A way to find security groups; a group that any term finds is attached."""

    id: Annotated[
        Annotated[str, Meta(pattern="sg-[0-9a-z]+")] | None, about("The id of a security group.")
    ] = None
    name: Annotated[
        str | None, about("The name of a security group, which is not its Name tag.")
    ] = None
    tags: Annotated[_Tags | None, _ABOUT_TAGS] = None


class ReservationTerm(Wire, frozen=True):
    """A way to find capacity reservations; one that any term finds is used."""

    id: Annotated[ReservationId | None, about("The id of a capacity reservation.")] = None
    instance_match_criteria: Annotated[
        MatchCriteria | None,
        about("Whether machines come into it by themselves or only if asked to."),
    ] = None
    owner_id: Annotated[OwnerId | None, about("The account that owns the reservation.")] = None
    tags: Annotated[_Tags | None, _ABOUT_TAGS] = None


class ImageTerm(Wire, frozen=True):
    """A way to find images; of those found the newest that suits an instance type is used."""

    alias: Annotated[
        Annotated[
            str,
            Meta(max_length=_ALIAS_LENGTH),
            rules(
                SchemaRule(
                    "self.matches('^[a-zA-Z0-9]+@.+$')",
                    "'alias' must be written as 'family@version'",
                ),
                SchemaRule(
                    f"self.split('@')[0] in [{_quoted(*ALIAS_FAMILIES)}]",
                    f"the family of 'alias' must be one of {_quoted(*ALIAS_FAMILIES)}",
                ),
                SchemaRule(
                    f"!(self.split('@')[0] in [{_quoted(*_WINDOWS)}]) || "
                    "self.split('@')[1] == 'latest'",
                    "windows families may only specify version 'latest'",
                ),
            ),
        ]
        | None,
        about("Images made for EKS: a family and a version, al2023@latest or al2023@v20260101."),
    ] = None
    id: Annotated[
        Annotated[str, Meta(pattern="ami-[0-9a-z]+")] | None, about("The id of an image.")
    ] = None
    name: Annotated[str | None, about("The name of an image, which is not its Name tag.")] = None
    owner: Annotated[
        str | None,
        about("The owner of the image: an account, `self` or `amazon`."),
    ] = None
    ssm_parameter: Annotated[
        str | None, about("An SSM parameter, by name or ARN, that holds the id of an image.")
    ] = None
    tags: Annotated[_Tags | None, _ABOUT_TAGS] = None


SubnetTerms = Annotated[
    list[SubnetTerm],
    _TERMS,
    rules(
        _not_empty("subnetSelectorTerms"),
        _something("tags", "id"),
        _alone_somewhere("id", "tags"),
    ),
]
SecurityGroupTerms = Annotated[
    list[SecurityGroupTerm],
    _TERMS,
    rules(
        _not_empty("securityGroupSelectorTerms"),
        _something("tags", "id", "name"),
        _alone_somewhere("id", "tags", "name"),
        _alone_somewhere("name", "tags", "id"),
    ),
]
ReservationTerms = Annotated[
    list[ReservationTerm],
    _TERMS,
    rules(
        _something("tags", "id", "instanceMatchCriteria"),
        _alone_somewhere("id", "tags", "ownerID", "instanceMatchCriteria"),
    ),
]
ImageTerms = Annotated[
    list[ImageTerm],
    Meta(min_length=1, max_length=_TERMS_MAX),
    rules(
        _something("tags", "id", "name", "alias", "ssmParameter"),
        _alone("id", "alias", "tags", "name", "owner"),
        _alone("alias", "id", "tags", "name", "owner"),
        SchemaRule(
            "!self.exists(x, has(x.alias)) || self.size() == 1",
            "a term with 'alias' must be the only one",
        ),
    ),
]


class PlacementGroupSelector(Wire, frozen=True):
    """The placement group to launch into, by name or by id."""

    id: Annotated[
        Annotated[str, Meta(pattern="^pg-[0-9a-z]+$")] | None, about("The id of a placement group.")
    ] = None
    name: Annotated[
        Annotated[str, Meta(min_length=1)] | None, about("The name of a placement group.")
    ] = None


PLACEMENT_GROUP_RULES: Final = rules(
    SchemaRule("has(self.name) || has(self.id)", "one of 'name', 'id' must be set"),
    SchemaRule("!(has(self.name) && has(self.id))", "cannot set both 'name' and 'id'"),
)
