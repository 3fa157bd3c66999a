"""How the mirror reads each kind."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from msgspec.json import Decoder

from karpy.codec.fields import Fields, JsonObject
from karpy.codec.objects import (
    read_budget,
    read_controller,
    read_namespace,
    read_service,
)
from karpy.codec.pods import PodReader
from karpy.codec.storage import read_attach_limits, read_claim, read_class, read_volume
from karpy.codec.workloads import read_daemon_set
from karpy.model.labels import NAMESPACE_NAME
from karpy.model.pods import DaemonSet, PodController

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


def daemon_reader() -> FieldReader[DaemonSet]:
    """Read DaemonSets; what their pods share is kept once."""
    pods = PodReader()
    return FieldReader(lambda fields: read_daemon_set(fields, pods))


def controller_reader(kind: str) -> FieldReader[PodController]:
    """Read what selects pods: ReplicaSets and the like."""
    return FieldReader(lambda fields: read_controller(fields, kind))


BUDGETS: Final = FieldReader(read_budget)
SERVICES: Final = FieldReader(read_service)
NAMESPACES: Final = FieldReader(named_namespace)
VOLUMES: Final = FieldReader(read_volume)
VOLUME_CLAIMS: Final = FieldReader(read_claim)
STORAGE_CLASSES: Final = FieldReader(read_class)
ATTACH_LIMITS: Final[FieldReader[Mapping[str, int | None]]] = FieldReader(read_attach_limits)

AnyReader = FieldReader[Any]
