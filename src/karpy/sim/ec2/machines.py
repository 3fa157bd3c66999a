"""The machines of a fake EC2: each boots, reads its user data, and runs a kubelet."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

from msgspec import Struct

from karpy.codec.aws.instancetypes import read_instance_types
from karpy.codec.fields import JsonObject
from karpy.core.aws.capacity import capacity, overhead
from karpy.model.ec2 import Ec2Settings, InstanceSettings, InstanceTypeInfo
from karpy.model.instances import allocatable
from karpy.model.labels import ARCH, INSTANCE_TYPE, REGION, ZONE
from karpy.model.resources import PODS
from karpy.sim.cloud.cloud import Metal
from karpy.sim.ec2.userdata import read_user_data
from karpy.sim.kubelets.hardware import Hardware

_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
_MEMORY_LOST: Final = 0.05
"""The part of the memory that the machine itself takes: less than the autoscaler assumes."""
_LOOKS: Final = 0.2


class Powered(Protocol):
    """A running instance: the fields that its machine needs."""

    @property
    def id(self) -> str: ...

    @property
    def instance_type(self) -> str: ...

    @property
    def zone(self) -> str: ...

    @property
    def user_data(self) -> str: ...


class RunningMachine(Struct, frozen=True):
    """A running instance of the fake EC2."""

    id: str
    instance_type: str
    zone: str
    user_data: str


class SimulatedMachines:
    """Boots and halts the machines of instances."""

    def __init__(self, metal: Metal, types: Iterable[JsonObject]) -> None:
        """Take the instance types as DescribeInstanceTypes returns them."""
        infos, _ = read_instance_types(types)
        self._infos: dict[str, InstanceTypeInfo] = {each.name: each for each in infos}
        self._metal = metal
        self._running: dict[str, str] = {}
        """Node names by instance ID."""

    def node_of(self, id_: str) -> str:
        """Return the node name of a running instance."""
        return self._running[id_]

    def boot(self, instance: Powered) -> None:
        """Boot a machine; its kubelet joins if the user data says so."""
        self._running[instance.id] = ""
        joining = read_user_data(instance.user_data)
        info = self._infos.get(instance.instance_type)
        if not joining.cluster or info is None:
            return
        settings, operator = InstanceSettings(), Ec2Settings(_MEMORY_LOST)
        amounts = dict(capacity(info, settings, operator))
        if joining.max_pods is not None:
            amounts[PODS] = joining.max_pods
        name = f"ip-{instance.id.removeprefix('i-')}"
        zone = instance.zone
        self._running[instance.id] = name
        self._metal.boot(
            Hardware(
                name=name,
                capacity=amounts,
                allocatable=allocatable(amounts, overhead(info, settings, amounts)),
                labels={
                    **joining.labels,
                    # The last three are written by the cloud controller manager.
                    ARCH: _ARCHITECTURES[info.architectures[0]],
                    INSTANCE_TYPE: info.name,
                    ZONE: zone,
                    REGION: zone.rstrip("abcdef"),
                },
                taints=joining.taints,
                provider_id=f"aws:///{zone}/{instance.id}",
            )
        )

    def halt(self, id_: str) -> None:
        """Halt a machine for ever."""
        name = self._running.pop(id_, "")
        if name:
            self._metal.halt(name)

    def match(self, instances: Iterable[Powered]) -> None:
        """Boot the machines of new instances, and halt those of instances that are gone."""
        there = {each.id: each for each in instances}
        for id_ in self._gone(there):
            self.halt(id_)
        for id_, each in there.items():
            if id_ not in self._running:
                self.boot(each)

    def _gone(self, there: Collection[str]) -> list[str]:
        return [each for each in self._running if each not in there]


async def keep_running(machines: SimulatedMachines, look: Callable[[], Iterable[Powered]]) -> None:
    """Poll the instances of an EC2 and boot and halt machines to match, until cancelled."""
    while True:
        machines.match(look())
        await asyncio.sleep(_LOOKS)
