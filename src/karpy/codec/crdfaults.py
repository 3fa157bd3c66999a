"""The faults of an object of a custom kind: all at once, each with its path and a hint."""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache, lru_cache, partial
from typing import Any, Final

from msgspec import Struct

from karpy.codec.constraints import KEY_HINT
from karpy.codec.crdhints import GONE_HINTS, MISSING_HINTS, PATTERN_HINTS, rule_hint
from karpy.codec.fields import FieldInvalid, Fields, JsonObject, caught, describe, shown
from karpy.codec.objectmeta import METADATA, metadata_faults, unknown_metadata
from karpy.codec.placeholders import placeholder_faults, placeholders_in
from karpy.codec.poolrules import find_faults, find_overlay_faults
from karpy.codec.providers import group_of_class, namesake
from karpy.codec.schemas.definitions import CUSTOM_KINDS, CustomKind
from karpy.codec.schemas.labelrules import AWS_LABELS
from karpy.codec.syntax import is_label_key
from karpy.codec.validation.celrules import compile_test
from karpy.codec.validation.faults import Fault, FaultKind
from karpy.codec.validation.shaping import Schema
from karpy.codec.validation.validator import CrdValidator
from karpy.model.labels import ARCH, CAPACITY_TYPE, OS

_KINDS: Final[Mapping[tuple[str, str], CustomKind]] = {
    (each.kind.api_version, each.kind.name): each for each in CUSTOM_KINDS
}
_NEAR: Final = 0.75
_LABEL_FAULTS: Final[
    Mapping[str, Callable[[Fields, frozenset[str]], Iterator[FieldInvalid] | tuple[Any, ...]]]
] = {"NodePool": find_faults, "NodeOverlay": find_overlay_faults}
_LOWER_CASE: Final = frozenset(
    {
        ARCH,
        CAPACITY_TYPE,
        OS,
        *(
            f"{domain}/instance-{each}"
            for domain in ("karpenter.k8s.aws", "eks.amazonaws.com")
            for each in ("category", "family", "hypervisor", "size")
        ),
    }
)
"""Labels whose values are all in lower case."""
_SIZES: Final = (
    "spec.blockDeviceMappings[].ebs.volumeSize",
    "spec.kubelet.evictionHard[]",
    "spec.kubelet.evictionSoft[]",
)
"""Paths of sizes and thresholds, where a plain number lacks its unit."""
_UBUNTU_HINT: Final = (
    "name the images by `name` and `owner` in `amiSelectorTerms`, and write `amiFamily: AL2`, "
    "which starts them alike"
)
_EC2_CLASS: Final = "EC2NodeClass"
_QUOTES: Final = "\u201c\u201d\u201e\u201f\u2018\u2019"
_TYPES: Final = {
    "array": ("a list", "write it as a list, `- ...`"),
    "boolean": ("true or false", "write true or false"),
    "integer": ("a whole number", "write a whole number"),
    "number": ("a number", "write a number"),
    "object": ("an object", "write it as `name: value` pairs"),
}
_AWS_GROUP: Final = "karpenter.k8s.aws"
_AWS_DOMAIN: Final = f"{_AWS_GROUP}/"
_CLASS_REFS: Final = {
    "NodeClaim": "spec.nodeClassRef",
    "NodePool": "spec.template.spec.nodeClassRef",
}
_LABELS: Final = re.compile(r"\.(requirements|labels)(\[[^\]]*\])?$")
"""Paths of requirements and labels, which Karpenter checks beyond the definition."""
_ABOUT_ENTRIES: Final = re.compile(r"\.all\(|^!self\.exists\(")
"""Rules that hold or fail for each entry on its own."""
_BRACKETS: Final = re.compile(r"\[(?!\d+\])([^\]]*)\]")
"""Keys of mappings, which a path may also have after a dot."""
_NO_INTEGER: Final = "Checked value must be of type integer"
_BROKEN: Final = "is wrong: "
_MISSING: Final = object()


def is_custom(api_version: str, kind: str) -> bool:
    """Say whether Karpy ships a CustomResourceDefinition for this version of a kind."""
    return (api_version, kind) in _KINDS


def custom_faults(obj: JsonObject, well_known: frozenset[str]) -> tuple[FieldInvalid, ...]:
    """
    List all faults for which an API server refuses an object of a custom kind.

    Unknown fields are among them, as for `kubectl apply`, and placeholders that are not filled in.
    The status is not checked: controllers write it.
    """
    try:
        return _each_place_once(list(_strange_keys(obj, "")) or _faults(obj, well_known))
    except RecursionError:
        return (FieldInvalid("", "is nested too deeply", "check that it is a manifest"),)


def _strange_keys(value: object, path: str) -> Iterator[FieldInvalid]:
    """Find keys that are no text: keys of JSON are always text."""
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                what = f"has the key {describe(key)}, not text"
                yield FieldInvalid(path, what, f'quote it: `"{shown(key)}"`')
            yield from _strange_keys(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _strange_keys(each, f"{path}[{index}]")


def _faults(obj: JsonObject, well_known: frozenset[str]) -> list[FieldInvalid]:
    kind = str(obj.get("kind"))
    validator = validator_of(str(obj.get("apiVersion")), kind)
    plain = {key: each for key, each in obj.items() if key != "status"}
    schema = validator.schema(plain)
    unfilled = [
        *placeholder_faults(plain.get("metadata"), "metadata"),
        *placeholder_faults(plain.get("spec"), "spec"),
    ]
    before = [
        *unfilled,
        *metadata_faults(plain),
        *_unknown_at_top(plain, schema, kind),
        *_unknown(plain.get("spec"), _below(schema, "spec"), "spec", schema),
        *_capital_faults(plain),
        *_role_faults(plain),
        *_class_ref_faults(plain),
        *_template_faults(plain),
    ]
    found = [one for each in validator.faults(plain) for one in _translated(each, plain, schema)]
    find = _LABEL_FAULTS.get(kind)
    if find is None or not (before or found):
        return [*before, *found]
    # Karpenter's own checks find some of these faults too, and may name their place better.
    return [*before, *_all_caught(partial(find, Fields(plain), well_known)), *found]


@cache
def validator_of(api_version: str, kind: str) -> CrdValidator:
    """Return the validator of a custom kind, compiled once."""
    return CrdValidator(_KINDS[api_version, kind].to_json())


def _all_caught(find: Callable[[], Any]) -> list[FieldInvalid]:
    found: list[FieldInvalid] = []
    found += caught(lambda: found.extend(find()))
    return found


def _each_place_once(faults: list[FieldInvalid]) -> tuple[FieldInvalid, ...]:
    """
    Keep the first fault of each field, and drop later faults within that field.

    The fault of a rule about an object does not drop faults of the fields within the object.
    """
    kept: dict[str, FieldInvalid] = {}
    closed: list[str] = []
    for each in faults:
        path = _BRACKETS.sub(r".\1", each.path)
        is_rule = each.problem.startswith(_BROKEN)
        is_coarse = (
            is_rule
            and bool(_LABELS.search(each.path))
            and any(known.startswith((f"{path}.", f"{path}[")) for known in kept)
        )
        if path not in kept and not is_coarse and not path.startswith(tuple(closed)):
            kept[path] = each
            if path and not is_rule:
                closed += (f"{path}.", f"{path}[")
    return tuple(kept.values())


def _below(schema: Schema, key: str) -> Schema:
    found: Schema = schema.get("properties", {}).get(key, {})
    return found


# --- unknown fields -----------------------------------------------------------------------------


def _unknown_at_top(obj: JsonObject, schema: Schema, kind: str) -> Iterator[FieldInvalid]:
    has_metadata = isinstance(obj.get("metadata"), dict)
    for key in obj:
        if key in schema["properties"] or (key == "name" and not has_metadata):
            continue
        what = f"is no field of a {kind}"
        if key in METADATA:
            yield FieldInvalid(str(key), what, "indent it: it belongs below `metadata`")
        elif key in _below(schema, "spec").get("properties", {}):
            yield FieldInvalid(str(key), what, "indent it: it belongs below `spec`")
        else:
            yield FieldInvalid(str(key), what, _field_hint(str(key), schema, schema))


def _unknown(value: object, schema: Schema, path: str, whole: Schema) -> Iterator[FieldInvalid]:
    if isinstance(value, list):
        items = schema.get("items", {})
        for index, each in enumerate(value):
            yield from _unknown(each, items, f"{path}[{index}]", whole)
        return
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for key, each in value.items():
        if key in properties:
            yield from _unknown(each, properties[key], f"{path}.{key}", whole)
        elif isinstance(others, dict):
            yield from _unknown(each, others, f"{path}[{key}]", whole)
        elif properties:
            yield _unknown_field(f"{path}.{key}", str(key), each, schema, whole)


def _unknown_field(
    path: str, key: str, value: object, schema: Schema, whole: Schema
) -> FieldInvalid:
    known = schema["properties"]
    if set(known) == {"annotations", "labels"}:
        found = list(unknown_metadata(path.rpartition(".")[0], {key: value}))
        return found[0] if found else FieldInvalid(path, "has no effect here", "remove it")
    if key == "apiVersion" and "group" in known:
        group = str(value).partition("/")[0]
        return FieldInvalid(path, "is not known here", f"write `group: {group}` instead")
    return FieldInvalid(path, "is not known here", _field_hint(key, schema, whole))


def _field_hint(key: str, schema: Schema, whole: Schema) -> str:
    """Return the hint for an unknown field: where it belongs, or how it is spelt."""
    if key in GONE_HINTS:
        return GONE_HINTS[key]
    elsewhere = [path for path in _paths(whole) if path.rpartition(".")[2] == key]
    if elsewhere:
        return f"move it to `{elsewhere[0]}`"
    known = sorted(schema.get("properties", ()))
    near = get_close_matches(key, known, 1, _NEAR) or [
        each for each in known if each.lower() == key.lower()
    ]
    if near:
        return f"write `{near[0]}`"
    return f"remove it, or write one of: {', '.join(known)}" if known else "remove it"


def _paths(schema: Schema, path: str = "") -> Iterator[str]:
    """Yield the paths of all fields of an object that are in no list."""
    for key, below in schema.get("properties", {}).items():
        if key not in {"metadata", "status"} or path:
            at = f"{path}.{key}" if path else key
            yield at
            yield from _paths(below, at)


# --- faults of the schema and its rules --------------------------------------------------------


class _Found(Struct, frozen=True):
    """A value that a fault is about."""

    path: str
    """The path of the value, with keys of mappings in brackets."""
    place: str
    """The same path with `[]` for entries of lists and mappings."""
    value: object
    schema: Schema


def _translated(fault: Fault, obj: JsonObject, schema: Schema) -> Iterator[FieldInvalid]:
    path = fault.path.removeprefix(".")
    if fault.detail.startswith(_NO_INTEGER):
        path = fault.detail.rpartition(" in ")[2]
    found = _find(path, obj, schema)
    value = found.value
    if fault.detail.startswith(_NO_INTEGER):
        bits = found.schema.get("format", "int64").removeprefix("int")
        what = f"is {_shown(value)}, not a whole number of {bits} bits"
        yield FieldInvalid(found.path, what, "write a smaller whole number")
    elif fault.kind is FaultKind.REQUIRED:
        name = found.path.rpartition(".")[2]
        hint = MISSING_HINTS.get(name, f"add `{name}`")
        yield FieldInvalid(found.path, "is missing", hint)
    elif fault.kind is FaultKind.TYPE_INVALID:
        yield _type_fault(found)
    elif fault.kind is FaultKind.NOT_SUPPORTED:
        yield FieldInvalid(found.path, f"is {_shown(value)}", _choice(value, found.schema))
    elif fault.kind is FaultKind.TOO_LONG:
        yield FieldInvalid(found.path, fault.detail.replace("may not be", "is"), "shorten it")
    elif fault.kind is FaultKind.TOO_MANY:
        size = len(value) if isinstance(value, list | dict) else 0
        most = found.schema.get("maxItems", found.schema.get("maxProperties"))
        yield FieldInvalid(found.path, f"has {size} entries, more than {most}", "remove some")
    elif fault.kind is FaultKind.DUPLICATE:
        yield FieldInvalid(found.path, "is there twice", "remove one of the two")
    elif " in body " in fault.detail:
        yield _body_fault(found, fault.detail)
    else:
        yield from _rule_faults(found, fault.detail)


def _type_fault(found: _Found) -> FieldInvalid:
    name = found.schema.get("type", "string")
    value = found.value
    if name == "string" and found.schema.get("format") and isinstance(value, str):
        what = f"is {_shown(value)}, which is no {found.schema['format']}"
        return FieldInvalid(found.path, what, f"write it as a {found.schema['format']}")
    text = ("text", f'quote it: `"{shown(value)}"`')
    if not isinstance(value, str | int | float):
        text = ("text", "write one text")
    elif found.place in _SIZES:
        text = ("text", PATTERN_HINTS[found.place])
    wanted, hint = _TYPES.get(name, text)
    if found.schema.get("x-kubernetes-int-or-string"):
        wanted, hint = "a number or text", "write a number or text"
    return FieldInvalid(found.path, f"is {describe(value)}, not {wanted}", hint)


def _body_fault(found: _Found, detail: str) -> FieldInvalid:
    problem = detail.partition(" in body ")[2]
    value, least, most = found.value, found.schema.get("minimum"), found.schema.get("maximum")
    if problem.startswith("should match"):
        hint = PATTERN_HINTS.get(
            found.place, f"write it as {problem.removeprefix('should match ')}"
        )
        return FieldInvalid(found.path, f"is {_shown(value)}", _plain_quotes(value) or hint)
    hint = f"change it: it {problem}"
    if least is not None and most is not None:
        hint = f"write a number from {least} to {most}"
    elif least is not None or most is not None:
        hint = f"write a number of {most} or less" if least is None else f"write {least} or more"
    what = f"is {_shown(value)}" if isinstance(value, int | float) else problem
    if isinstance(value, list | dict):
        what, hint = ("is empty", "add an entry") if not value else (problem, hint)
    return FieldInvalid(found.path, "is empty" if value == "" else what, hint)


def _rule_faults(found: _Found, message: str) -> Iterator[FieldInvalid]:
    hint = rule_hint(_rule_in(message)) or "change it so that this holds"
    if isinstance(found.value, list | dict):
        parts = _violating_entries(found, message)
        for at in parts:
            name = at.removeprefix("[").removesuffix("]")
            near = _near_label(name, message)
            yield FieldInvalid(f"{found.path}{at}", f"{_BROKEN}{_rule_in(message)}", near or hint)
        if not parts:
            yield FieldInvalid(found.path, f"{_BROKEN}{_rule_in(message)}", hint)
    else:
        near = _near_label(str(found.value), message) or _ubuntu_hint(found.value)
        what = f"is {_shown(found.value)}: {_rule_in(message)}"
        yield FieldInvalid(found.path, what, near or hint)


def _rule_in(message: str) -> str:
    """Return the message of a rule, whether it failed to evaluate or does not hold."""
    return message.rpartition("rule: ")[2]


def _near_label(key: str, message: str) -> str:
    """Return the hint with the label that a restricted one likely stands for; empty if none."""
    if not message.startswith("label domain"):
        return ""
    near = get_close_matches(key, AWS_LABELS, 1, _NEAR) if key.startswith(_AWS_DOMAIN) else []
    meant = namesake(key) or next(iter(near), "")
    return f"write `{meant}`" if meant else ""


def _violating_entries(found: _Found, message: str) -> list[str]:
    """Return the paths of the entries that violate a rule about all entries."""
    texts = [
        each["rule"]
        for each in found.schema.get("x-kubernetes-validations", ())
        if each.get("message") == _rule_in(message) and _ABOUT_ENTRIES.search(each["rule"])
    ]
    if not texts:
        return []
    holds, value = _test(texts[0]), found.value
    if isinstance(value, dict):
        return [f"[{key}]" for key, each in value.items() if not holds({key: each})]
    if isinstance(value, list):
        return [f"[{index}]" for index, each in enumerate(value) if not holds([each])]
    return []


@lru_cache(maxsize=256)
def _test(rule: str) -> Callable[[object], bool]:
    test = compile_test(rule)
    return lambda value: test is None or test({"self": value}) is True


def _ubuntu_hint(value: object) -> str:
    """Return the hint for Ubuntu, a former image family; empty for other values."""
    return _UBUNTU_HINT if str(value).lower().startswith("ubuntu") else ""


def _choice(value: object, schema: Schema) -> str:
    known = [str(each) for each in schema.get("enum", ())]
    near = get_close_matches(str(value), known, 1, _NEAR) or [
        each for each in known if each.lower() == str(value).lower()
    ]
    hint = f"write one of: {', '.join(known)}"
    if near:
        hint = f"write `{near[0]}`; known are: {', '.join(known)}"
    return _plain_quotes(value) or _ubuntu_hint(value) or hint


def _plain_quotes(value: object) -> str:
    if isinstance(value, str) and value[:1] in _QUOTES and value:
        return 'write plain quotation marks, `"`, or none'
    return ""


def _shown(value: object) -> str:
    return describe(value) if isinstance(value, list | dict | None) else f"`{shown(value)}`"


def _find(path: str, obj: JsonObject, schema: Schema) -> _Found:
    """Find the value at a path as an API server writes it, in which keys may contain anything."""
    value: object = obj
    at = place = ""
    while path:
        step, path = _step(path, value)
        if step.startswith("[") and isinstance(value, list):
            index = step.strip("[]")
            value = value[int(index)] if int(index) < len(value) else _MISSING
            at, place, schema = f"{at}{step}", f"{place}[]", schema.get("items", {})
            continue
        key = step.removeprefix("[").removesuffix("]")
        properties = schema.get("properties", {})
        if key in properties or not isinstance(schema.get("additionalProperties"), dict):
            dot = "." if at else ""
            at, place, schema = f"{at}{dot}{key}", f"{place}{dot}{key}", properties.get(key, {})
        else:
            at, place, schema = f"{at}[{key}]", f"{place}[]", schema["additionalProperties"]
        value = value.get(key, _MISSING) if isinstance(value, dict) else _MISSING
    return _Found(at, place, None if value is _MISSING else value, schema)


def _step(path: str, value: object) -> tuple[str, str]:
    """Split the first step off a path; of several keys that match, the longest one."""
    if isinstance(value, dict):
        for key in sorted(map(str, value), key=len, reverse=True):
            for name in (key, f"[{key}]"):
                rest = path[len(name) :]
                if path.startswith(name) and (not rest or rest[0] in ".["):
                    return name, rest.removeprefix(".")
    if path.startswith("["):
        end = path.index("]") + 1
        return path[:end], path[end:].removeprefix(".")
    ends = [at for sign in ".[" if (at := path.find(sign)) > 0]
    end = min(ends, default=len(path))
    return path[:end], path[end:].removeprefix(".")


def _template_faults(obj: JsonObject) -> Iterator[FieldInvalid]:
    """Find invalid label keys in the template of a NodePool, which the definition accepts."""
    found: object = obj
    for key in ("spec", "template", "metadata", "labels"):
        found = found.get(key) if isinstance(found, dict) else None
    for key in found if isinstance(found, dict) else ():
        if not is_label_key(key) and not placeholders_in(key):
            yield FieldInvalid(f"spec.template.metadata.labels[{key}]", "is no label key", KEY_HINT)


# --- values that no machine has ----------------------------------------------------------------


def _capital_faults(obj: JsonObject) -> Iterator[FieldInvalid]:
    """Find values with capital letters for labels that never have any."""
    for path, each in _requirements(obj):
        key, values = each.get("key"), each.get("values")
        if not isinstance(key, str) or key not in _LOWER_CASE or not isinstance(values, list):
            continue
        for index, value in enumerate(values):
            is_text = isinstance(value, str) and not placeholders_in(value)
            if is_text and value != value.lower():
                what = f"is `{shown(value)}`, and `{key}` has no such value"
                yield FieldInvalid(f"{path}.values[{index}]", what, f"write `{value.lower()}`")


def _role_faults(obj: JsonObject) -> Iterator[FieldInvalid]:
    """Find a role or instance profile that is given by its ARN instead of its name."""
    spec = obj.get("spec")
    for key in ("role", "instanceProfile"):
        value = spec.get(key) if isinstance(spec, dict) and obj.get("kind") == _EC2_CLASS else None
        if isinstance(value, str) and value.startswith("arn:") and not placeholders_in(value):
            hint = f"write `{value.rpartition('/')[2]}`"
            yield FieldInvalid(f"spec.{key}", f"is the ARN `{shown(value)}`, not a name", hint)


def _class_ref_faults(obj: JsonObject) -> Iterator[FieldInvalid]:
    """Find a reference to a node class whose kind does not exist in its group."""
    path = _CLASS_REFS.get(str(obj.get("kind")), "")
    found: object = obj if path else None
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    group, kind = (found.get("group"), found.get("kind")) if isinstance(found, dict) else ("", "")
    if not isinstance(group, str) or not isinstance(kind, str) or placeholders_in(group + kind):
        return
    meant = group_of_class(kind)
    if group and meant and group != meant:
        what = f"is `{shown(group)}`, which has no {kind}"
        yield FieldInvalid(f"{path}.group", what, f"write `{meant}`")
    elif group == _AWS_GROUP and kind and kind != _EC2_CLASS:
        what = f"is `{shown(kind)}`, which {group} does not have"
        yield FieldInvalid(f"{path}.kind", what, f"write `{_EC2_CLASS}`")


def _requirements(obj: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for path in ("spec.template.spec", "spec"):
        found: object = obj
        for key in (*path.split("."), "requirements"):
            found = found.get(key) if isinstance(found, dict) else None
        for index, each in enumerate(found if isinstance(found, list) else ()):
            if isinstance(each, dict):
                yield f"{path}.requirements[{index}]", each
