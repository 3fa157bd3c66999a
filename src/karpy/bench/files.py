"""Workload files, plain or gzipped; errors name the path."""

import gzip
import json
import zlib
from pathlib import Path
from typing import Final

from karpy.bench.objects import Json
from karpy.bench.workloads import CONSOLIDATE, FORMAT, PROVISION
from karpy.codec.jsontext import check_keys, parse_json
from karpy.codec.karpbench import workload_faults
from karpy.codec.limits import Unparsable
from karpy.errors import FileUnreadable, FileUnwritable, WorkloadInvalid

_GZIP_MAGIC: Final = b"\x1f\x8b"
_SHOWN_MAX: Final = 60


def read_bytes(path: Path) -> bytes:
    """Read a file, decompressed if it is gzipped, whatever its name."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileUnreadable(path=str(path), problem=error.strerror or str(error)) from error
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise WorkloadInvalid(path=str(path), problem=f"its gzip data is bad ({error})") from error


def parse_workload(path: Path, data: bytes) -> Json:
    """Parse a workload into fresh objects, one per pod; NodePools are validated by their CRD."""
    try:
        value = parse_json(data)
        check_keys(data, value)
    except Unparsable as error:
        raise WorkloadInvalid(
            path=str(path), problem=f"it cannot be read as JSON ({error})"
        ) from error
    if not isinstance(value, dict):
        raise WorkloadInvalid(path=str(path), problem="it is no JSON object")
    if value.get("format") != FORMAT:
        problem = f"its `format` is {_shown(value.get('format'))}"
        raise WorkloadInvalid(path=str(path), problem=problem)
    if value.get("kind", PROVISION) not in {PROVISION, CONSOLIDATE}:
        shown = _shown(value["kind"])
        problem = f"its `kind` is {shown}, and neither `provision` nor `consolidate`"
        raise WorkloadInvalid(path=str(path), problem=problem)
    if faults := workload_faults(value):
        problem = "; ".join(f"{each} ({each.hint})" for each in faults)
        raise WorkloadInvalid(path=str(path), problem=problem)
    return value


def write_bytes(path: Path, data: bytes, *, is_gzipped: bool) -> Path:
    """Write a workload, gzipped or not, into a folder created on demand; return the path."""
    if is_gzipped:
        path = path.with_name(path.name + ".gz")
        data = gzip.compress(data, mtime=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise FileUnwritable(path=str(path), problem=error.strerror or str(error)) from error
    return path


def _shown(value: object) -> str:
    if value is None:
        return "missing"
    text = json.dumps(value)
    return f"`{text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + '…'}`"
