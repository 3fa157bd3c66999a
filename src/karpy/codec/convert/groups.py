"""Managed node groups and Auto Scaling groups in the output of the AWS CLI."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, NoReturn

from karpy.codec.convert.drafts import ConversionContext, Source
from karpy.codec.convert.nodegroups import node_group
from karpy.codec.convert.objects import Found
from karpy.codec.convert.oldfields import OldFields
from karpy.codec.convert.scalinggroups import scaling_group
from karpy.codec.fields import JsonObject

_NODE_GROUP: Final = "nodegroup"
_SCALING_GROUPS: Final = "AutoScalingGroups"
_MORE: Final = "NextToken"
_NAMES: Final = {"nodegroupName": node_group, "AutoScalingGroupName": scaling_group}


def is_group(value: JsonObject) -> bool:
    """Say whether an object is an answer of the AWS CLI about groups."""
    return not value.keys().isdisjoint({_NODE_GROUP, _SCALING_GROUPS, *_NAMES})


def groups_in(found: Iterable[Found]) -> list[Source]:
    """Return each group of all outputs; any other object fails when it is converted."""
    groups = [group for each in found for group in _groups(each)]
    names = [_name(each) for each in groups]
    return [
        _source(each, [*names[:index], *names[index + 1 :]]) for index, each in enumerate(groups)
    ]


def _groups(found: Found) -> Iterator[Found]:
    if found.value.get(_MORE):
        yield _part(found, found.value, _MORE)
    if found.value.get(_SCALING_GROUPS) and isinstance(found.value[_SCALING_GROUPS], list):
        for index, each in enumerate(found.value[_SCALING_GROUPS]):
            yield _part(found, each, f"{_SCALING_GROUPS}[{index}]")
    elif isinstance(found.value.get(_NODE_GROUP), dict):
        yield _part(found, found.value[_NODE_GROUP], _NODE_GROUP)
    else:
        yield _part(found, found.value, "")


def _part(found: Found, value: object, path: str) -> Found:
    group = value if isinstance(value, dict) else {}
    part = Found(found.file, found.where, group, path)
    name = _name(part)
    where = f"{found.where}, group {name}" if name else found.where
    return Found(found.file, where, group, path)


def _name(found: Found) -> str:
    return next((str(found.value[key]) for key in _NAMES if key in found.value), "")


def _source(found: Found, others: list[str]) -> Source:
    for key, change in _NAMES.items():
        if key in found.value:
            return Source(found, partial(change, others=others))
    return Source(found, _no_group)


def _no_group(old: OldFields, _context: ConversionContext) -> NoReturn:
    if old.path == _MORE:
        hint = "call the AWS CLI without `--max-items`, or give the other answers, too"
        old.fail("", "says that there are more groups than these", hint)
    old.fail(
        "",
        "describes no group of machines",
        "give what `aws eks describe-nodegroup` or `aws autoscaling "
        "describe-auto-scaling-groups` prints",
    )
