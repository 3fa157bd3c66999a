"""A CloudProvider in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from karpy.codec.fields import JsonObject
from karpy.errors import MachineNotFound, NoCapacity, NodeClassNotReady, RebootUnsupported
from karpy.model.instances import Catalog, allocatable
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, SPOT, ZONE
from karpy.model.nodes import RepairPolicy
from karpy.model.records import ClaimRecord
from karpy.model.requirements import Requirements
from karpy.ports.clock import Clock
from karpy.ports.cloud import LaunchSpec, Machine
from karpy.sim.cloud.interruptions import Interruptions, SpotInterruption
from karpy.sim.cloud.market import Bought, Good, SimulatedMarket
from karpy.sim.cloud.terms import Terms
from karpy.sim.draws import SeededDraws
from karpy.sim.kubelets.hardware import Hardware

_HOUR: Final = 3600
_HOURS_MAX: Final = 24 * 365

TaintsOf = Callable[[LaunchSpec], Sequence[JsonObject]]
"""Returns the taints with which the kubelet of a launch registers."""


class Metal(Protocol):
    """Boots and halts machines."""

    def boot(self, hardware: Hardware) -> None:
        """Boot a machine."""

    def halt(self, name: str) -> None:
        """Halt a machine for ever."""


class _Instance(Struct):
    """The state of a machine in the cloud; changes until the machine is terminated."""

    machine: Machine
    node: str
    good: Good
    is_gone: bool = False


class SimCloud:
    """
    A CloudProvider that launches machines of a catalog and boots them.

    A launch takes the cheapest of its options in stock. A repeated token never starts a second
    machine: it returns the first one, terminated or not. The Node of a terminated machine stays.
    """

    def __init__(
        self,
        market: SimulatedMarket,
        clock: Clock,
        metal: Metal | None = None,
        terms: Terms | None = None,
        *,
        seed: int = 0,
        taints_of: TaintsOf | None = None,
    ) -> None:
        self.market = market
        self._clock = clock
        self._metal = metal
        self._terms = terms or Terms()
        self._draws = SeededDraws("cloud", seed)
        self._taints_of = taints_of
        self._instances: dict[str, _Instance] = {}
        self._by_token: dict[str, str] = {}
        self._drift: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._duds = 0
        self._interruptions = Interruptions()
        self._timers: set[asyncio.TimerHandle] = set()

    @property
    def name(self) -> str:
        """The name of the provider in metrics and logs."""
        return "simulated"

    def start(self) -> None:
        """Do nothing: machines boot without an operator."""

    async def close(self) -> None:
        """Do nothing: the cloud is not part of any operator."""

    def catalog(self) -> Catalog:
        """Return all instance types, including those that are sold out now."""
        return self.market.catalog()

    async def launch(self, spec: LaunchSpec) -> Machine:
        """Start one machine; raise NoCapacity if every option is sold out."""
        instance = self._started_before(spec) or self._start(spec)
        if self._terms.answer_seconds:
            await asyncio.sleep(self._terms.answer_seconds)
        return instance.machine

    async def terminate(self, provider_id: str) -> None:
        """Terminate a machine; raise MachineNotFound once it is gone."""
        instance = self._present(provider_id)
        if not instance.machine.is_terminating:
            instance.machine = replace(instance.machine, is_terminating=True)
            self._later(self._terms.end_seconds, self._end, provider_id)

    async def machine(self, provider_id: str) -> Machine:
        """Return one machine; raise MachineNotFound if it is gone."""
        return self._present(provider_id).machine

    async def machines(self) -> Sequence[Machine]:
        """List the machines that carry this cluster's tag."""
        return [each.machine for each in self._instances.values() if not each.is_gone]

    async def drift(self, claim: ClaimRecord) -> str:
        """Return the reason why a claim's machine differs from its node class; empty if not."""
        return self._drift.get(claim.name, "")

    @property
    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """The node conditions that make a node unhealthy: none."""
        return ()

    async def reboot(self, provider_id: str, operation: str) -> None:
        """Refuse."""
        del provider_id, operation
        raise RebootUnsupported(provider=self.name)

    def interruptions(self) -> AsyncIterator[SpotInterruption]:
        """Return a stream of the interruptions from now on."""
        return self._interruptions.listen()

    def interrupt(self, provider_id: str) -> None:
        """Interrupt a machine: publish the notice, and terminate it at the end of the notice."""
        instance = self._present(provider_id)
        now = self._clock.now()
        ends = now + timedelta(seconds=self._terms.notice_seconds)
        self._interruptions.publish(SpotInterruption(instance.machine.provider_id, now, ends))
        self._later(self._terms.notice_seconds, self._end, provider_id)

    def kill(self, provider_id: str) -> None:
        """Terminate a machine at once, as a user of the cloud console does."""
        self._present(provider_id)
        self._end(provider_id)

    def set_drift(self, claim: str, how: str | None) -> None:
        """Set the drift reason of a NodeClaim's machine; None ends the drift."""
        if how is None:
            self._drift.pop(claim, None)
        else:
            self._drift[claim] = how

    def refuse(self, node_class: str, problem: str) -> None:
        """Refuse launches with a node class; an empty problem allows them again."""
        self._refused[node_class] = problem

    def spoil(self, launches: int = 1) -> None:
        """Let the machines of the next launches boot and never join."""
        self._duds += launches

    def node_of(self, provider_id: str) -> str:
        """Return the name of a machine's Node, terminated or not."""
        instance = self._instances.get(provider_id)
        if instance is None:
            raise MachineNotFound(provider_id=provider_id)
        return instance.node

    def has(self, provider_id: str) -> bool:
        """Say whether a machine exists."""
        instance = self._instances.get(provider_id)
        return instance is not None and not instance.is_gone

    def stop(self) -> None:
        """Cancel all pending terminations and interruptions."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _started_before(self, spec: LaunchSpec) -> _Instance | None:
        provider_id = self._by_token.get(spec.token)
        return None if provider_id is None else self._instances[provider_id]

    def _start(self, spec: LaunchSpec) -> _Instance:
        if problem := self._refused.get(spec.node_class):
            raise NodeClassNotReady(name=spec.node_class, problem=problem)
        bought = self.market.buy(spec.options, spec.reservations)
        if bought is None:
            raise NoCapacity(claim=spec.claim, options=len(spec.options))
        number = len(self._instances) + 1
        id_ = f"i-{self._draws.hexadecimal(16)}"
        machine = Machine(
            provider_id=f"{self._terms.scheme}:///{bought.good.zone}/{id_}",
            claim=spec.claim,
            instance_type=bought.type.name,
            zone=bought.good.zone,
            capacity_type=bought.good.capacity_type,
            created=self._clock.now(),
            labels=_labels(bought),
            capacity={**bought.type.capacity, **bought.offering.capacity_override},
            allocatable=_allocatable(bought),
        )
        node = f"ip-10-0-{number >> 8}-{number & 255}.{self._terms.scheme}.internal"
        instance = _Instance(machine, node, bought.good)
        self._instances[machine.provider_id] = instance
        self._by_token[spec.token] = machine.provider_id
        if self._metal is not None:
            self._metal.boot(self._hardware(instance, spec, bought))
        if bought.good.capacity_type == SPOT and self._terms.interruption_percent:
            self._later(self._lifetime(), self._interrupt_if_there, machine.provider_id)
        return instance

    def _hardware(self, instance: _Instance, spec: LaunchSpec, bought: Bought) -> Hardware:
        is_dud = self._duds > 0 or self._draws.happens(self._terms.dud_percent)
        self._duds = max(0, self._duds - 1)
        asked = () if self._taints_of is None else self._taints_of(spec)
        machine = instance.machine
        return Hardware(
            name=instance.node,
            capacity=machine.capacity,
            allocatable=machine.allocatable,
            labels={**spec.labels, **machine.labels},
            taints=(*asked, *(dict(each) for each in self._terms.taints)),
            provider_id=machine.provider_id,
            volume_limits=bought.type.volume_limits,
            is_dud=is_dud,
        )

    def _lifetime(self) -> float:
        """Draw the seconds until a spot machine is interrupted."""
        hours = 0
        while hours < _HOURS_MAX and not self._draws.happens(self._terms.interruption_percent):
            hours += 1
        return float(hours * _HOUR + self._draws.below(_HOUR))

    def _interrupt_if_there(self, provider_id: str) -> None:
        if self.has(provider_id):
            self.interrupt(provider_id)

    def _end(self, provider_id: str) -> None:
        instance = self._instances[provider_id]
        if instance.is_gone:
            return
        instance.is_gone = True
        instance.machine = replace(instance.machine, is_terminating=True)
        self.market.give_back(instance.good)
        if self._metal is not None:
            self._metal.halt(instance.node)

    def _present(self, provider_id: str) -> _Instance:
        instance = self._instances.get(provider_id)
        if instance is None or instance.is_gone:
            raise MachineNotFound(provider_id=provider_id)
        return instance

    def _later(self, seconds: float, act: Callable[[str], None], provider_id: str) -> None:
        def ring() -> None:
            self._timers.discard(timer)
            act(provider_id)

        timer = asyncio.get_running_loop().call_later(seconds, ring)
        self._timers.add(timer)


def _labels(bought: Bought) -> dict[str, str]:
    """Return the labels of a node that follow from its offering."""
    requirements: Requirements = {**bought.type.requirements, **bought.offering.requirements}
    certain = {
        key: next(iter(each.values))
        for key, each in requirements.items()
        if not each.complement and len(each.values) == 1
    }
    return {
        **certain,
        INSTANCE_TYPE: bought.type.name,
        ZONE: bought.good.zone,
        CAPACITY_TYPE: bought.good.capacity_type,
    }


def _allocatable(bought: Bought) -> dict[str, int]:
    capacity = {**bought.type.capacity, **bought.offering.capacity_override}
    return allocatable(capacity, {**bought.type.overhead, **bought.offering.overhead_override})
