"""The machine on which the figures were measured."""

import os
import platform
import time
from pathlib import Path
from typing import Final

_CPU: Final = Path("/proc/cpuinfo")
_MEMORY: Final = Path("/proc/meminfo")
_KIB_PER_GIB: Final = 1024**2
_REFERENCE_STEPS: Final = 5_000_000


def describe_machine() -> str:
    """Return one sentence about this machine."""
    model = _field(_CPU, "model name") or platform.processor() or platform.machine()
    parts = [f"{os.cpu_count()} cores of {model}"]
    if total := _field(_MEMORY, "MemTotal"):
        parts.append(f"{int(total.split()[0]) / _KIB_PER_GIB:.0f} GiB")
    parts += [platform.system(), f"{platform.python_implementation()} {platform.python_version()}"]
    return ", ".join(parts)


def reference_seconds() -> float:
    """Time a fixed piece of pure Python, to compare figures of different machines."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        sum(number * number for number in range(_REFERENCE_STEPS))
        times.append(time.perf_counter() - began)
    return min(times)


def _field(path: Path, name: str) -> str:
    if not path.exists():
        return ""
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
