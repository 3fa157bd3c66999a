"""Ports of this machine, and requests to programs on them."""

import json
import socket
import ssl
from collections.abc import Iterable
from contextlib import ExitStack, closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final

from karpy.codec.fields import JsonObject

HOST: Final = "127.0.0.1"
_SECONDS_TO_ANSWER: Final = 5.0
_OK: Final = 200


def free_ports(names: Iterable[str]) -> dict[str, int]:
    """Find a free port for each name, no two the same."""
    with ExitStack() as stack:
        sockets = {name: stack.enter_context(socket.socket()) for name in names}
        for each in sockets.values():
            each.bind((HOST, 0))
        return {name: int(each.getsockname()[1]) for name, each in sockets.items()}


def is_healthy(port: int, path: str, authority: str = "") -> bool:
    """Say whether a health endpoint answers 200; with an authority, over HTTPS."""
    try:
        with closing(_connection(port, authority)) as connection:
            connection.request("GET", path)
            return connection.getresponse().status == _OK
    except (OSError, HTTPException):
        return False


def post_json(port: int, path: str, body: object) -> JsonObject:
    """Send JSON and return the JSON object of the answer."""
    with closing(_connection(port, "")) as connection:
        connection.request("POST", path, json.dumps(body))
        answer: JsonObject = json.load(connection.getresponse())
    return answer


def _connection(port: int, authority: str) -> HTTPConnection:
    if not authority:
        return HTTPConnection(HOST, port, timeout=_SECONDS_TO_ANSWER)
    context = ssl.create_default_context(cadata=authority)
    return HTTPSConnection(HOST, port, timeout=_SECONDS_TO_ANSWER, context=context)
