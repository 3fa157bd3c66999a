"""Log lines in console format: the time, a sentence, and the remaining fields."""

from collections.abc import Mapping
from typing import Any, Final

_SENTENCES: Final = {
    "found provisionable pod(s)": "pods need nodes: {Pods}",
    "computed new nodeclaim(s) to fit pod(s)": "decided on {nodeclaims} new node(s) for {pods}"
    " pod(s)",
    "computed unready node(s) will fit pod(s)": (
        "decided that {nodes} node(s) on their way take {pods} pod(s)"
    ),
    "pod(s) stay pending": "{pods} pod(s) stay pending: {reasons}",
    "created nodeclaim": "created {NodeClaim} of NodePool {NodePool} for {requests}, as"
    " {instance-types}",
    "launched nodeclaim": "launched {NodeClaim}: {instance-type}, {capacity-type}, in {zone}",
    "registered nodeclaim": "{NodeClaim} has joined as node {Node}",
    "initialized nodeclaim": "{NodeClaim} is ready as node {Node}",
    "disrupting node(s)": "disrupting {disrupted-node-count} node(s) with {pod-count} pod(s):"
    " {command}",
    "command succeeded": "disrupted: {command}",
    "tainted node": "{Node} takes no more pods and is drained",
    "deleted node": "{Node} is gone",
    "deleted nodeclaim": "{NodeClaim} is gone",
}
"""Sentences by message; a field that the sentence contains is not repeated after it."""
_LEFT_OUT: Final = frozenset(
    {"level", "time", "logger", "message", "commit", "reconcileID", "namespace", "name"}
)
_INFO: Final = "INFO"
_CLOCK: Final = slice(11, 23)
"""The time of day in a timestamp such as `2026-03-01T12:00:00.045Z`."""


def console_line(shaped: Mapping[str, Any]) -> bytes:
    """Write the fields of a JSON line in console format; unknown messages stay unchanged."""
    fields = {key: _plain(value) for key, value in shaped.items() if key not in _LEFT_OUT}
    message = str(shaped["message"])
    form = _SENTENCES.get(message, "")
    used = {key for key in fields if f"{{{key}}}" in form}
    if form and form.count("{") == len(used):
        message = form.format_map(fields)
    else:
        used = set()
    trace = fields.pop("stacktrace", "")
    level = "" if shaped["level"] == _INFO else f"{shaped['level']} "
    rest = "".join(f"  {key}={_quoted(value)}" for key, value in fields.items() if key not in used)
    text = f"{str(shaped['time'])[_CLOCK]} {level}{_one_line(message)}{rest}"
    return (text + (f"\n{trace}" if trace else "")).encode()


def _plain(value: object) -> str:
    """Write a field; an object is its namespace and name."""
    if isinstance(value, Mapping):
        return "/".join(str(each) for each in value.values())
    return str(value)


def _quoted(text: str) -> str:
    text = _one_line(text)
    return f'"{text}"' if not text or " " in text else text


def _one_line(text: str) -> str:
    """Replace control characters: names from the cluster must not control a terminal."""
    return "".join(each if each.isprintable() else "?" for each in text)
