"""All states of the NodeClaims or nodes of a cluster in order, from a watch."""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from karpy.adapters.controlplane.guard import end
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.controlplane.programs import find_program, require_programs
from karpy.codec.fields import JsonObject
from karpy.sim.store.conditions import condition_of

_SECONDS_BETWEEN_LOOKS: Final = 0.02
_START: Final = re.compile(r"\{")

Claims = dict[str, JsonObject]
"""NodeClaims by name."""


class ClaimLog:
    """The events of a watch of NodeClaims so far, without gaps."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._states: list[Claims] = []

    def states(self) -> list[Claims]:
        """Return the NodeClaims after each change so far."""
        text, decoder = self._path.read_text(encoding="utf-8"), json.JSONDecoder()
        while found := _START.search(text, self._read):
            try:
                event, self._read = decoder.raw_decode(text, found.start())
            except json.JSONDecodeError:
                # The last line is not complete yet.
                break
            self._states.append(_after(event, self._states[-1] if self._states else {}))
        return self._states

    @property
    def created(self) -> set[str]:
        """The names of all NodeClaims that have ever existed."""
        return {name for claims in self.states() for name in claims}

    @property
    def deleted(self) -> set[str]:
        """The names of all NodeClaims that were ever deleting, whether they are gone or not."""
        return {
            name
            for claims in self.states()
            for name, claim in claims.items()
            if "deletionTimestamp" in claim["metadata"]
        }

    @property
    def most_disrupted(self) -> int:
        """The largest number of nodes that were disrupted at the same time."""
        return max((len(disrupted(claims)) for claims in self.states()), default=0)

    @property
    def most_tainted(self) -> int:
        """The largest number of nodes that had the disruption taint at the same time."""
        return max((sum(map(_is_tainted, nodes.values())) for nodes in self.states()), default=0)

    @property
    def most(self) -> int:
        """The largest number of NodeClaims at the same time, without terminating machines."""
        return max((len(_lasting(claims)) for claims in self.states()), default=0)

    def wait(self, holds: Callable[[Claims], object], seconds: float) -> None:
        """Wait until any state, past ones included, satisfies a condition."""
        deadline = monotonic() + seconds
        while not any(holds(claims) for claims in self.states()):
            assert monotonic() < deadline, "not in time"
            sleep(_SECONDS_BETWEEN_LOOKS)


def _after(event: JsonObject, claims: Claims) -> Claims:
    name = event["object"]["metadata"]["name"]
    others = {key: claim for key, claim in claims.items() if key != name}
    return others if event["type"] == "DELETED" else {**others, name: event["object"]}


def disrupted(claims: Claims) -> list[str]:
    """Return the NodeClaims that count against a disruption budget."""
    return [
        name
        for name, claim in _lasting(claims).items()
        if "deletionTimestamp" in claim["metadata"] or is_true(claim, "DisruptionReason")
    ]


def _is_tainted(node: JsonObject) -> bool:
    """Say whether a node has the disruption taint, by key and effect."""
    wanted = ("karpenter.sh/disrupted", "NoSchedule")
    return any((each["key"], each["effect"]) == wanted for each in node["spec"].get("taints", ()))


def is_true(claim: JsonObject, type_: str) -> bool:
    """Say whether a condition is true."""
    found = condition_of(claim, type_)
    return found is not None and found["status"] == "True"


def _lasting(claims: Claims) -> Claims:
    return {
        name: claim for name, claim in claims.items() if not is_true(claim, "InstanceTerminating")
    }


@contextmanager
def watching(plane: ControlPlane, what: str = "nodeclaims") -> Iterator[ClaimLog]:
    """Watch the NodeClaims or nodes of a cluster while the context is open."""
    kubectl = find_program(require_programs(os.environ), "kubectl")
    name = f"{what}-{monotonic():.6f}"
    words = ("get", what, "--output=json", "--watch", "--output-watch-events")
    process = plane.spawn(name, [kubectl, f"--kubeconfig={plane.kubeconfig}", *words])
    try:
        yield ClaimLog(plane.log(name))
    finally:
        end(process, patience_seconds=0)
