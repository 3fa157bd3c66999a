"""The kubelets of all machines: they join, renew their leases, and fail on request."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Final

from msgspec import Struct, field

from karpy.codec.fields import JsonObject
from karpy.errors import MachineNotFound
from karpy.model.kinds import CSI_NODE, LEASE, NODE
from karpy.ports.clock import Clock
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.draws import SeededDraws
from karpy.sim.kubelets.behaviour import PREFIX
from karpy.sim.kubelets.hardware import Hardware
from karpy.sim.kubelets.nodes import (
    LEASES,
    READY,
    STARTING,
    Health,
    addresses,
    conditions,
    csi_node_object,
    lease_object,
    node_info,
    node_object,
    reports,
)
from karpy.sim.kubelets.podrunner import MachineState, PodRunner
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.store.names import ObjectTimes
from karpy.sim.store.store import Store
from karpy.sim.worker import Worker

ADOPTED: Final = (PREFIX + "kubelet", "kwok.x-k8s.io/node")
"""Annotations by which a Node of another writer asks for a simulated kubelet."""
_POST_SECONDS: Final = 300.0
_INSTANT: Final = 1e-6
_NEVER: Final = float("inf")


class _Step(Enum):
    JOIN = "make the Node"
    GET_READY = "report that it is Ready"
    BEAT = "renew the report"


class _Machine(Struct):
    """A machine and the state of its kubelet."""

    hardware: Hardware
    state: MachineState
    boot_id: str
    step: _Step
    due: float
    is_running: bool = False
    """Whether its kubelet runs, and with it the pods."""
    is_adopted: bool = False
    """Whether another writer created its Node; the machine is removed with the Node."""
    is_halted: bool = False
    lost_at: datetime | None = None
    posted: float = 0.0
    ready: Health = STARTING
    troubles: dict[str, Health] = field(default_factory=dict)


class Kubelets:
    """
    Runs a kubelet for every booted machine, and for every Node that asks for one.

    A Node that carries an annotation of `ADOPTED` asks for one. All other Nodes without a booted
    machine are left alone.
    """

    def __init__(
        self, store: Store, clock: Clock, timing: KubeletTiming | None = None, *, seed: int = 0
    ) -> None:
        self._store = store
        self._clock = clock
        self._times = ObjectTimes(clock)
        self._timing = timing or KubeletTiming()
        self._draws = SeededDraws("kubelets", seed)
        self._machines: dict[str, _Machine] = {}
        self._worker = Worker(self._work)
        self._runner = PodRunner(store, clock, self._timing, seed, self._state_of)
        self._listeners: tuple[Callable[[str], None], ...] = ()
        self._addresses = 0
        self._end: Callable[[], None] | None = None

    def start(self) -> None:
        """Start the kubelets of Nodes that ask for one, and run pods."""
        self._end = self._store.subscribe(NODE, self._on_node)
        self._runner.start()
        for node in self._store.list(NODE):
            self._adopt(node)

    def stop(self) -> None:
        """Stop all kubelets; Nodes and pods stay as they are."""
        if self._end is not None:
            self._end()
        self._worker.stop()
        self._runner.stop()

    def boot(self, hardware: Hardware) -> None:
        """Boot a machine; its Node is created after the boot, and becomes Ready later."""
        seconds = hardware.boot_seconds
        seconds = self._timing.boot_seconds if seconds is None else seconds
        machine = self._new(hardware, _Step.JOIN, self._lasting(seconds))
        if hardware.is_dud:
            machine.due = _NEVER
        self._worker.add(hardware.name)

    def halt(self, name: str) -> None:
        """Halt a machine for ever; its Node and its pods stay until controllers delete them."""
        machine = self._machines.get(name)
        if machine is None:
            return
        machine.is_halted = True
        self._silence(name, machine)
        if self._store.find(NODE, name) is None:
            del self._machines[name]

    def lose(self, name: str) -> None:
        """Stop the reports of a kubelet, as a broken network does."""
        self._silence(name, self._known(name))

    def recover(self, name: str) -> None:
        """Let a lost kubelet report again."""
        machine = self._known(name)
        if machine.step is not _Step.JOIN:
            machine.is_running, machine.lost_at = True, None
            self._post(machine)
            self._notify(name)
            self._runner.look_at(name)
            self._runner.recover(name)
        self._go_on(name, machine)

    def slow(self, name: str, factor: float) -> None:
        """Multiply the start and stop times of the pods of a node."""
        machine = self._known(name)
        machine.state = MachineState(machine.state.address, factor)

    def trouble(self, name: str, health: Health) -> None:
        """Let a kubelet, or an agent on its machine, report a condition; `Ready` is one too."""
        machine = self._known(name)
        if health.type == "Ready":
            machine.ready = health
        else:
            machine.troubles[health.type] = health
        self._post(machine)

    def heal(self, name: str, *, also: tuple[Health, ...] = ()) -> None:
        """Clear all reported troubles of a node; set conditions of agents as given."""
        machine = self._known(name)
        machine.ready = READY
        machine.troubles = {each.type: each for each in also}
        self._post(machine)
        self._runner.recover(name)

    def reboot(self, name: str) -> None:
        """Reboot a machine: the Node stays, all containers start again."""
        machine = self._known(name)
        self._silence(name, machine)
        machine.boot_id = self._uuid()
        machine.ready = STARTING
        machine.step = _Step.JOIN
        machine.due = asyncio.get_running_loop().time() + self._lasting(self._timing.boot_seconds)
        self._worker.add(name)

    def is_beating(self, name: str) -> bool:
        """Say whether a kubelet runs and reports."""
        machine = self._machines.get(name)
        return machine is not None and machine.is_running

    def last_beat(self, name: str) -> datetime | None:
        """Return when a kubelet stopped reporting; None if it reports, never did, or is unknown."""
        machine = self._machines.get(name)
        return None if machine is None else machine.lost_at

    def living(self) -> list[str]:
        """Return the nodes with a reporting kubelet, in the order of boot."""
        return [name for name, machine in self._machines.items() if machine.is_running]

    def is_lost(self, name: str) -> bool:
        """Say whether the kubelet of a machine is lost and may recover."""
        machine = self._machines.get(name)
        return machine is not None and machine.lost_at is not None and not machine.is_halted

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call a listener whenever a kubelet stops or resumes reporting."""
        self._listeners = (*self._listeners, listener)

    def _work(self, name: str) -> float | None:
        machine = self._machines.get(name)
        if machine is None or machine.due == _NEVER:
            return None
        now = asyncio.get_running_loop().time()
        if machine.due > now + _INSTANT:
            return machine.due - now
        match machine.step:
            case _Step.JOIN:
                self._join(name, machine)
            case _Step.GET_READY:
                self._get_ready(name, machine)
            case _Step.BEAT:
                self._beat(machine)
        return None if machine.due == _NEVER else max(0.0, machine.due - now)

    def _join(self, name: str, machine: _Machine) -> None:
        is_back = machine.lost_at is not None
        machine.is_running, machine.lost_at = True, None
        hardware = machine.hardware
        if self._store.find(NODE, name) is None and not is_back:
            now = self._times.text()
            node = node_object(hardware, machine.state.address, machine.boot_id, now)
            made = self._store.create(NODE, node)
            if hardware.volume_limits and self._store.find(CSI_NODE, name) is None:
                self._store.create(CSI_NODE, csi_node_object(made, hardware.volume_limits))
        else:
            self._post(machine)
        self._renew(name)
        self._notify(name)
        if is_back:
            self._runner.restart(name)
        self._runner.look_at(name)
        seconds = hardware.ready_seconds
        seconds = self._timing.ready_seconds if seconds is None else seconds
        machine.step = _Step.GET_READY
        machine.due = asyncio.get_running_loop().time() + self._lasting(seconds)

    def _get_ready(self, name: str, machine: _Machine) -> None:
        if machine.ready is STARTING:
            machine.ready = READY
        if machine.is_running:
            self._post(machine)
            self._renew(name)
        machine.step = _Step.BEAT
        self._go_on(name, machine)

    def _beat(self, machine: _Machine) -> None:
        name = machine.hardware.name
        if not machine.is_running or self._store.find(NODE, name) is None:
            machine.due = _NEVER
            return
        now = asyncio.get_running_loop().time()
        if now - machine.posted >= self._timing.scaled(_POST_SECONDS) - _INSTANT:
            self._post(machine)
        self._renew(name)
        machine.due = now + self._timing.beat_seconds

    def _go_on(self, name: str, machine: _Machine) -> None:
        now = asyncio.get_running_loop().time()
        machine.due = now + (self._timing.beat_seconds if machine.step is _Step.BEAT else 0.0)
        self._worker.add(name)

    def _post(self, machine: _Machine) -> None:
        """Write the status of the Node, if its kubelet reports and the Node exists."""
        node = self._store.find(NODE, machine.hardware.name)
        if node is None or not machine.is_running:
            return
        machine.posted = asyncio.get_running_loop().time()
        old = node.get("status") or {}
        reported = reports(machine.ready, machine.troubles)
        labels = node["metadata"].get("labels") or {}
        status = {
            **old,
            "conditions": conditions(old.get("conditions") or [], reported, self._times.text()),
            "addresses": old.get("addresses")
            or addresses(machine.hardware.name, machine.state.address),
            "nodeInfo": node_info(labels, machine.boot_id),
        }
        if machine.is_adopted:
            status["phase"] = "Running"
        self._store.set_status(NODE, node, status)

    def _renew(self, name: str) -> None:
        node = self._store.find(NODE, name)
        if node is None:
            return
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        fresh = lease_object(node, now)
        lease = self._store.find(LEASE, name, LEASES)
        if lease is None:
            self._store.create(LEASE, fresh)
        else:
            self._store.replace(LEASE, {**lease, "spec": fresh["spec"]})

    def _on_node(self, event: WatchEvent, before: JsonObject | None) -> None:
        name = event.object["metadata"]["name"]
        if event.type is EventType.ADDED:
            self._adopt(event.object)
        elif event.type is EventType.DELETED:
            machine = self._machines.get(name)
            if machine is not None and (machine.is_adopted or machine.is_halted):
                del self._machines[name]
        elif before is not None and before["metadata"] is not event.object["metadata"]:
            self._adopt(event.object)

    def _adopt(self, node: JsonObject) -> None:
        meta = node["metadata"]
        name, annotations = meta["name"], meta.get("annotations") or {}
        if name in self._machines or not any(key in annotations for key in ADOPTED):
            return
        machine = self._new(Hardware(name, {}), _Step.GET_READY, self._timing.ready_seconds)
        machine.is_running = machine.is_adopted = True
        self._worker.add(name)
        self._runner.look_at(name)

    def _new(self, hardware: Hardware, step: _Step, seconds: float) -> _Machine:
        self._addresses += 1
        address = f"10.0.{self._addresses >> 8 & 255}.{self._addresses & 255}"
        due = asyncio.get_running_loop().time() + seconds
        machine = _Machine(hardware, MachineState(address), self._uuid(), step, due)
        self._machines[hardware.name] = machine
        return machine

    def _silence(self, name: str, machine: _Machine) -> None:
        machine.due = _NEVER
        if machine.is_running:
            machine.is_running, machine.lost_at = False, self._clock.now()
            self._notify(name)

    def _notify(self, name: str) -> None:
        for listener in self._listeners:
            listener(name)

    def _state_of(self, name: str) -> MachineState | None:
        machine = self._machines.get(name)
        return machine.state if machine is not None and machine.is_running else None

    def _known(self, name: str) -> _Machine:
        machine = self._machines.get(name)
        if machine is None or machine.is_halted:
            raise MachineNotFound(provider_id=name)
        return machine

    def _lasting(self, seconds: float) -> float:
        return self._timing.scaled(self._draws.spread(seconds, self._timing.jitter_percent))

    def _uuid(self) -> str:
        draw = self._draws.hexadecimal
        return f"{draw(8)}-{draw(4)}-4{draw(3)}-a{draw(3)}-{draw(12)}"
