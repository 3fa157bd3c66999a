"""User data of several parts, as cloud-init and nodeadm read them: MIME multipart."""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from karpy.core.aws.userdata.bootstrap import UserDataInvalid

SHELL: Final = 'text/x-shellscript; charset="us-ascii"'
NODE_CONFIG: Final = "application/node.eks.aws"
_BOUNDARY: Final = "//"
_HEAD: Final = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{_BOUNDARY}"\n\n'
_STARTS: Final = ("MIME-Version:", "Content-Type:")
_BOUNDARY_OF: Final = re.compile(
    r"""^content-type:\s*multipart/[^\n]*?boundary=(?:"([^"\n]+)"|([^\s;]+))""",
    re.IGNORECASE | re.MULTILINE,
)


class Part(Struct, frozen=True):
    """One part of several."""

    content_type: str
    text: str
    headers: tuple[str, ...] = ()
    """Further headers, as written."""


def is_mime(user_data: str) -> bool:
    """Say whether user data is written in parts."""
    return user_data.lstrip().startswith(_STARTS)


def read_parts(user_data: str) -> list[Part]:
    """Take user data apart; raise UserDataInvalid."""
    text = user_data.lstrip().replace("\r\n", "\n")
    head, blank, body = text.partition("\n\n")
    boundary = _BOUNDARY_OF.search(head)
    if boundary is None or not blank:
        raise UserDataInvalid("it begins as MIME, but names no boundary of its parts")
    mark = f"--{boundary[1] or boundary[2]}"
    # The end of a part is the line break before the next mark.
    chunks = re.split(rf"(?:^|\n){re.escape(mark)}", body)
    if not any(each.startswith("--") for each in chunks[1:]):
        raise UserDataInvalid(f"the part that begins with `{mark}` has no end `{mark}--`")
    parts = []
    for chunk in chunks[1:]:
        if chunk.startswith("--"):
            break
        parts.append(_read_part(chunk))
    return parts


def write_parts(parts: Iterable[Part]) -> str:
    """Put parts together."""
    text = _HEAD
    for part in parts:
        headers = "".join(f"{each}\n" for each in part.headers)
        text += f"--{_BOUNDARY}\n{headers}Content-Type: {part.content_type}\n\n{part.text}\n"
    return f"{text}--{_BOUNDARY}--"


def _read_part(chunk: str) -> Part:
    head, _, text = chunk.lstrip("\n").partition("\n\n")
    content_type, others = "text/plain", []
    for line in head.splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-type":
            content_type = value.strip()
        elif line.strip():
            others.append(line.strip())
    return Part(content_type, text, tuple(others))
