"""NodeOverlays to records, and changes of records to a status."""

from collections.abc import Iterator
from typing import Final

from karpy.codec.crds import read_overlay
from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.poolrules import find_overlay_faults
from karpy.codec.records import (
    Writes,
    read_conditions,
    read_identity,
    write_conditions,
    write_status,
)
from karpy.model.conditions import Conditions
from karpy.model.labels import WELL_KNOWN
from karpy.model.pools import NodeOverlay, OverlayRecord

OVERLAY_DEPENDENTS: Final = ("ValidationSucceeded",)


def read_overlay_record(fields: Fields) -> OverlayRecord:
    """Read a NodeOverlay of karpenter.sh/v1alpha1; its faults are returned, not raised."""
    # One fault may be found twice, by its rule and by reading it.
    faults = tuple(dict.fromkeys(str(fault) for fault in _faults(fields)))
    overlay: NodeOverlay | None = None if faults else read_overlay(fields)
    conditions = Conditions(read_conditions(fields.child("status")), OVERLAY_DEPENDENTS)
    return OverlayRecord(read_identity(fields), overlay, faults, conditions)


def overlay_writes(before: OverlayRecord, after: OverlayRecord) -> Writes:
    """Return the patch that turns one record of a NodeOverlay into another: of its status only."""
    status: JsonObject = {}
    if before.conditions.items != after.conditions.items:
        status["conditions"] = write_conditions(after.conditions.items)
    return Writes(status=write_status(after.meta, status))


def _faults(fields: Fields) -> Iterator[FieldInvalid]:
    try:
        # The API server refuses labels of Karpenter's own, whatever else a cloud knows.
        yield from find_overlay_faults(fields, WELL_KNOWN)
        read_overlay(fields)
    except FieldInvalid as fault:
        yield fault
