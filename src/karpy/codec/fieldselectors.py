"""Field selectors: `spec.nodeName=n1,status.phase!=Failed`, and which fields each kind offers."""

import re
from collections.abc import Iterable
from typing import Final, NoReturn

from msgspec import Struct

from karpy.codec.fields import JsonObject, shown
from karpy.codec.labelselectors import SELECTOR_LENGTH_MAX
from karpy.errors import BadRequest
from karpy.model.kinds import (
    BUILT_IN,
    EVENT,
    EVENTS_EVENT,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    REPLICATION_CONTROLLER,
    SECRET,
    SERVICE,
    Kind,
)

_BAD_REQUEST: Final = 400
_TERM: Final = re.compile(r"(?P<label>.*?)(?P<operator>!=|==|=)(?P<value>.*)", re.DOTALL)
_COMMA: Final = re.compile(r"(?<!\\)(?:\\\\)*,")
_ALWAYS: Final = ("metadata.name", "metadata.namespace")
_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")

_OFFERED: Final[dict[Kind, tuple[str, ...]]] = {
    POD: (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    NODE: ("spec.unschedulable",),
    NAMESPACE: ("status.phase",),
    SECRET: ("type",),
    SERVICE: ("spec.clusterIP", "spec.type"),
    REPLICATION_CONTROLLER: ("status.replicas",),
    JOB: ("status.successful",),
    EVENT: (
        *(f"involvedObject.{each}" for each in (*_REFERENCE, "fieldPath")),
        *("reason", "reportingComponent", "source", "type"),
    ),
    EVENTS_EVENT: (
        *(f"regarding.{each}" for each in (*_REFERENCE, "fieldPath")),
        *("reason", "reportingController", "type"),
    ),
}
_ELSEWHERE: Final = {
    "status.successful": "status.succeeded",
    "source": "source.component",
    "status.podIPs": "status.podIP",
}
"""The path of the value of a field label, where the label is not the path."""
_DEFAULTS: Final = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.replicas": "0",
    "status.successful": "0",
}


class FieldRule(Struct, frozen=True, gc=False):
    """One condition on one field."""

    label: str
    path: tuple[str, ...]
    value: str
    is_equal: bool
    default: str = ""

    def holds(self, obj: JsonObject) -> bool:
        """Say whether the object meets the condition."""
        found: object = obj
        for part in self.path:
            found = found.get(part) if isinstance(found, dict) else None
        return (_text(found, self.default) == self.value) is self.is_equal


class FieldSelector(Struct, frozen=True, gc=False):
    """Conditions on fields that must all hold."""

    rules: tuple[FieldRule, ...] = ()

    def matches(self, obj: JsonObject) -> bool:
        """Say whether an object meets all conditions."""
        rules = self.rules
        return rules[0].holds(obj) if len(rules) == 1 else all(rule.holds(obj) for rule in rules)

    def exactly(self, label: str) -> str | None:
        """Return the only value that a field may have, if there is one."""
        for rule in self.rules:
            if rule.is_equal and rule.label == label:
                return rule.value
        return None


def read_field_selector(kind: Kind, text: str, custom: Iterable[str] = ()) -> FieldSelector:
    """
    Read a field selector; raise BadRequest for a field the kind does not offer.

    `custom` are the selectable fields of a custom resource, as `spec.color`.
    """
    usual = _ALWAYS[:1] if kind in {NODE, NAMESPACE} else _ALWAYS
    offered = {*usual, *_OFFERED.get(kind, ()), *custom}
    if len(text) > SELECTOR_LENGTH_MAX:
        raise _not_understood(shown(text), f"more than {SELECTOR_LENGTH_MAX} characters")
    rules = []
    for term in _terms(text):
        match = _TERM.fullmatch(term)
        if match is None:
            raise _not_understood(text, term)
        label = match["label"]
        if label not in offered:
            _refuse_field(kind, label, offered)
        path = tuple(_ELSEWHERE.get(label, label).split("."))
        value = re.sub(r"\\([\\,=])", r"\1", match["value"])
        is_equal = match["operator"] != "!="
        rules.append(FieldRule(label, path, value, is_equal, _DEFAULTS.get(label, "")))
    return FieldSelector(tuple(rules))


def _not_understood(text: str, term: str) -> BadRequest:
    return BadRequest(
        f"invalid selector: '{text}'; can't understand '{term}'",
        status=_BAD_REQUEST,
        hint="write a field selector such as `metadata.name=web`",
    )


def _terms(text: str) -> list[str]:
    terms, start = [], 0
    for match in _COMMA.finditer(text):
        terms.append(text[start : match.end() - 1])
        start = match.end()
    return [term for term in (*terms, text[start:]) if term]


def _refuse_field(kind: Kind, label: str, offered: set[str]) -> NoReturn:
    if kind == JOB:
        problem = f'field label "{label}" not supported for Job'
    elif kind in _OFFERED or kind not in BUILT_IN:
        problem = f"field label not supported: {label}"
    else:
        only = '"metadata.name", "metadata.namespace"'
        problem = f'"{label}" is not a known field selector: only {only}'
    raise BadRequest(
        problem, status=_BAD_REQUEST, hint=f"select by one of: {', '.join(sorted(offered))}"
    )


def _text(value: object, default: str) -> str:
    if value is None:
        return default
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
