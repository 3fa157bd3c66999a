"""Printers: the columns of a kind, and the rows of its objects."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from karpy.adapters.apiserver.tables.cells import age, name_of
from karpy.codec.fields import JsonObject

Cells = Callable[[JsonObject, datetime], list[Any]]
"""Returns the cells of an object as of a time."""


class PrinterColumn(Struct, frozen=True):
    """The definition of a column; only `-o wide` shows a column with a priority."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    about: str = ""

    def to_json(self) -> JsonObject:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.about,
            "priority": self.priority,
        }


class Printer(Struct, frozen=True):
    """Columns, and the function that makes their cells."""

    columns: tuple[PrinterColumn, ...]
    cells: Cells
    conditions: Callable[[JsonObject], list[JsonObject]] | None = None
    """Returns the conditions of a row, such as Completed."""

    def row(self, obj: JsonObject, now: datetime) -> JsonObject:
        """Return the row of an object."""
        made: JsonObject = {"cells": self.cells(obj, now)}
        if self.conditions is not None and (found := self.conditions(obj)):
            made["conditions"] = found
        return made


NAME: Final = PrinterColumn("Name", format="name", about="The name of the object.")
AGE: Final = PrinterColumn("Age", about="How long ago the object was made.")


def columns(text: str) -> tuple[PrinterColumn, ...]:
    """
    Return columns for names separated by `|`.

    `Name` and `Age` are the usual columns; `#Desired` is an integer, `?Suspend` a boolean; only
    `-o wide` shows a column in parentheses.
    """
    return tuple(_column(word.strip()) for word in text.split("|"))


def _column(word: str) -> PrinterColumn:
    fixed = {"Name": NAME, "Age": AGE}.get(word)
    if fixed is not None:
        return fixed
    priority = 1 if word.startswith("(") and word.endswith(")") else 0
    name = word[1:-1] if priority else word
    type_ = {"#": "integer", "?": "boolean"}.get(name[0], "string")
    return PrinterColumn(name.lstrip("#?"), type_, priority=priority)


def plain_printer() -> Printer:
    """Return the printer with name and age."""
    return Printer((NAME, AGE), lambda obj, now: [name_of(obj), age(obj, now)])


def table(
    printer: Printer, objects: Iterable[JsonObject], now: datetime, *, include: str, is_first: bool
) -> JsonObject:
    """Return a Table; `include` is `includeObject`: None, Metadata or Object."""
    rows = []
    for obj in objects:
        row = printer.row(obj, now)
        if include != "None":
            row["object"] = obj if include == "Object" else metadata_of(obj)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [each.to_json() for each in printer.columns] if is_first else None,
        "rows": rows,
    }


def metadata_of(obj: JsonObject) -> JsonObject:
    """Return an object as PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj.get("metadata") or {},
    }
