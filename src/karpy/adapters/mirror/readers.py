"""How the mirror reads each kind."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from msgspec.json import Decoder

from karpy.codec.admission import read_limit_range, read_runtime_class
from karpy.codec.fields import Fields, JsonObject
from karpy.codec.objects import (
    read_budget,
    read_controller,
    read_namespace,
    read_service,
)
from karpy.codec.pods import PodReader
from karpy.codec.storage import read_attach_limits, read_claim, read_class, read_volume
from karpy.codec.workloads import DaemonTemplate, read_daemon_template
from karpy.model.labels import NAMESPACE_NAME
from karpy.model.pods import PodController

T = TypeVar("T")

_decoder: Final = Decoder()


class FieldReader(Generic[T]):
    """Reads objects of a kind field by field."""

    def __init__(self, read: Callable[[Fields], T]) -> None:
        self._read = read

    def from_object(self, obj: JsonObject) -> T:
        return self._read(Fields(obj))

    def from_bytes(self, data: bytes) -> T:
        return self._read(Fields(_decoder.decode(data)))


def named_namespace(fields: Fields) -> Mapping[str, str]:
    """Read the labels of a Namespace, its name among them."""
    name, labels = read_namespace(fields)
    return {NAMESPACE_NAME: name, **labels}


def daemon_reader(pods: PodReader) -> FieldReader[DaemonTemplate]:
    """Read DaemonSets whose pods can be read."""
    return FieldReader(lambda fields: read_daemon_template(fields, pods))


def controller_reader(kind: str) -> FieldReader[PodController]:
    """Read what selects pods: ReplicaSets and the like."""
    return FieldReader(lambda fields: read_controller(fields, kind))


BUDGETS: Final = FieldReader(read_budget)
SERVICES: Final = FieldReader(read_service)
NAMESPACES: Final = FieldReader(named_namespace)
VOLUMES: Final = FieldReader(read_volume)
VOLUME_CLAIMS: Final = FieldReader(read_claim)
LIMIT_RANGES: Final = FieldReader(read_limit_range)
RUNTIME_CLASSES: Final = FieldReader(read_runtime_class)
STORAGE_CLASSES: Final = FieldReader(read_class)
ATTACH_LIMITS: Final[FieldReader[Mapping[str, int | None]]] = FieldReader(read_attach_limits)

AnyReader = FieldReader[Any]
