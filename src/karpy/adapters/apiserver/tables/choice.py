"""The printer of each kind."""

from collections.abc import Mapping
from typing import Final

from karpy.adapters.apiserver.tables.clusters import CLUSTERS
from karpy.adapters.apiserver.tables.customs import custom_printer
from karpy.adapters.apiserver.tables.pods import POD_PRINTER
from karpy.adapters.apiserver.tables.printers import Printer, plain_printer
from karpy.adapters.apiserver.tables.storage import STORAGE
from karpy.adapters.apiserver.tables.workloads import WORKLOADS
from karpy.ports.discovery import Resource

_PRINTERS: Final[Mapping[tuple[str, str], Printer]] = {
    ("", "Pod"): POD_PRINTER,
    **CLUSTERS,
    **WORKLOADS,
    **STORAGE,
}
_PLAIN: Final = plain_printer()


def printer_of(resource: Resource) -> Printer:
    """Return the printer of a kind."""
    kind = resource.kind
    if resource.definition is not None:
        return custom_printer(resource.definition, kind.version)
    return _PRINTERS.get((kind.group, kind.name), _PLAIN)
