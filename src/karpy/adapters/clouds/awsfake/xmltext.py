"""A fast writer of EC2's XML, for lists of types and offerings that take a megabyte."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final
from xml.sax.saxutils import escape

from botocore.model import ListShape, OperationModel, Shape, StructureShape

_NAMESPACE: Final = "http://ec2.amazonaws.com/doc/2016-11-15/"


def item_shape(operation: OperationModel, key: str) -> Shape:
    """Return the shape of the items of a list in an answer."""
    members = operation.output_shape.members
    return members[key].member


def write_item(shape: Shape, value: object) -> str:
    """Write one item of a list."""
    return f"<item>{_content(shape, value)}</item>"


def write_answer(operation: OperationModel, key: str, items: Iterable[str], token: str) -> str:
    """Write an answer around items that are already written."""
    name = operation.output_shape.members[key].serialization["name"]
    next_token = f"<nextToken>{escape(token)}</nextToken>" if token else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<{operation.name}Response xmlns="{_NAMESPACE}"><requestId>fake</requestId>'
        f"<{name}>{''.join(items)}</{name}>{next_token}</{operation.name}Response>"
    )


def _content(shape: Shape, value: object) -> str:
    if isinstance(shape, StructureShape):
        known = value if isinstance(value, Mapping) else {}
        return "".join(
            _element(member.serialization.get("name", name), member, known[name])
            for name, member in shape.members.items()
            if known.get(name) is not None
        )
    if isinstance(shape, ListShape):
        each_name = shape.member.serialization.get("name", "item")
        some = value if isinstance(value, (list, tuple)) else ()
        return "".join(_element(each_name, shape.member, each) for each in some)
    return escape(_scalar(value))


def _element(name: str, shape: Shape, value: object) -> str:
    return f"<{name}>{_content(shape, value)}</{name}>"


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return str(value)
