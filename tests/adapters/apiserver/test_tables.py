"""Tables equal those of a real API server (v1.36.3) for the same objects, in printed.json."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from karpy.adapters.apiserver.tables.cells import human_duration, since
from karpy.adapters.apiserver.tables.choice import printer_of
from karpy.adapters.apiserver.tables.customs import custom_printer
from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind
from karpy.ports.discovery import Resource

PRINTED: dict[str, Any] = json.loads(Path(__file__).with_name("printed.json").read_text())
NOW = datetime.fromisoformat(PRINTED["now"])


def definition(columns: list[JsonObject]) -> JsonObject:
    return {"spec": {"versions": [{"name": "v1", "additionalPrinterColumns": columns}]}}


def resource_of(printed: JsonObject) -> Resource:
    kind = Kind(printed["group"], printed["version"], printed["kind"], printed["plural"])
    versions = [
        {"name": kind.version, "additionalPrinterColumns": printed.get("printcolumns") or None}
    ]
    is_custom = "printcolumns" in printed
    return Resource(kind, "", definition={"spec": {"versions": versions}} if is_custom else None)


@pytest.mark.parametrize("printed", PRINTED["tables"], ids=lambda each: each["plural"])
def test_columns_are_those_of_a_real_server(printed: JsonObject) -> None:
    columns = printer_of(resource_of(printed)).columns

    found = [[each.name, each.type, each.format, each.priority] for each in columns]
    assert found == printed["columns"]


@pytest.mark.parametrize("printed", PRINTED["tables"], ids=lambda each: each["plural"])
def test_cells_are_those_of_a_real_server(printed: JsonObject) -> None:
    printer = printer_of(resource_of(printed))

    rows = [printer.row(each["object"], NOW) for each in printed["rows"]]

    expected = [
        {key: value for key, value in each.items() if key != "object"} for each in printed["rows"]
    ]
    assert rows == expected


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (305, "5m5s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 600, "3h10m"),
        (9 * 3600, "9h"),
        (50 * 3600, "2d2h"),
        (10 * 86400, "10d"),
        (3 * 365 * 86400, "3y"),
        (3 * 365 * 86400 + 5 * 86400, "3y5d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_durations_become_coarser(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize(("text", "shown"), [("", "<unknown>"), ("soon", "<invalid>")])
def test_an_invalid_time_is_an_error(text: str, shown: str) -> None:
    assert since(text, datetime.now(UTC)) == shown


SPEC = {
    "s": "hey",
    "l": ["a", "b", 3],
    "o": {"a.b": "dot", "z": 1.5},
    "i": 3,
    "b": True,
    "f": 2.7,
    "d": "2026-11-16T05:00:00Z",
    "later": "2027-01-01T00:00:00Z",
    "c": [{"type": "A", "status": "x", "n": 1}, {"type": "Ready", "status": "True", "n": 2}],
    "nothing": None,
    "whole": 4.0,
}


@pytest.mark.parametrize(
    ("path", "type_", "cell"),
    [
        (".spec.s", "string", "hey"),
        (".spec.l", "string", '["a","b",3]'),
        (".spec.l[*]", "string", "a"),
        (".spec.l[-1]", "string", "3"),
        (".spec.l[9]", "string", None),
        (".spec.l[0:2]", "string", "a"),
        (".spec.l[1,0]", "string", "b"),
        (".spec.o", "string", '{"a.b":"dot","z":1.5}'),
        (".spec.o.a\\.b", "string", "dot"),
        (".spec.o['a.b']", "string", "dot"),
        (".spec.o.*", "string", "dot"),
        (".spec.i", "integer", 3),
        (".spec.i", "string", "3"),
        (".spec.i", "boolean", None),
        (".spec.b", "boolean", True),
        (".spec.b", "integer", None),
        (".spec.b", "string", "true"),
        (".spec.f", "integer", 2),
        (".spec.f", "number", 2.7),
        (".spec.s", "number", None),
        (".spec.whole", "string", "4"),
        (".spec.d", "date", "19m"),
        (".spec.later", "date", "<invalid>"),
        (".spec.s", "date", "<invalid>"),
        (".spec.i", "date", None),
        ('.spec.c[?(@.type=="Ready")].status', "string", "True"),
        (".spec.c[?(@.type!='Ready')].type", "string", "A"),
        (".spec.c[?(@.n>1)].type", "string", "Ready"),
        (".spec.c[?(@.n)].type", "string", "A"),
        (".spec.c[?(@.type>1)].type", "string", None),
        ("..status", "string", "x"),
        (".spec.nothing", "string", "<no value>"),
        (".spec.missing", "string", None),
        (".spec[", "string", None),
        (".spec.l[x]", "string", None),
        (".spec.l[]", "string", None),
        (".spec.c[?(@.type==Ready)]", "string", None),
    ],
)
def test_a_printcolumn_shows_what_its_path_leads_to(path: str, type_: str, cell: object) -> None:
    printer = custom_printer(definition([{"name": "X", "type": type_, "jsonPath": path}]), "v1")

    row = printer.row({"metadata": {"name": "a"}, "spec": SPEC}, NOW)

    assert row["cells"] == ["a", cell]


def test_a_definition_without_columns_shows_the_age() -> None:
    printer = custom_printer({"spec": {"versions": [{"name": "v1"}]}}, "v1")
    made = (NOW - timedelta(seconds=7)).isoformat()

    row = printer.row({"metadata": {"name": "a", "creationTimestamp": made}}, NOW)

    assert [each.name for each in printer.columns] == ["Name", "Age"]
    assert row["cells"] == ["a", "7s"]
