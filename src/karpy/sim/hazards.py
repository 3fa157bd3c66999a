"""Random failures of machines, by seed."""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from karpy.sim.draws import SeededDraws
from karpy.sim.kubelets.kubelets import Kubelets
from karpy.sim.kubelets.nodes import Health

_HOUR: Final = 3600.0
BROKEN: Final = Health("Ready", "False", "KubeletNotReady", "PLEG is not healthy")


class Hazards(Struct, frozen=True):
    """The probability per node and hour of each failure, in percent."""

    lost_percent: int = 0
    """The kubelet stops reporting for ever."""
    away_percent: int = 0
    """The kubelet stops reporting for a while."""
    broken_percent: int = 0
    """The kubelet reports Ready=False from then on."""
    reboot_percent: int = 0
    slow_percent: int = 0
    away_seconds: float = 180.0
    slowness: float = 10.0


class Chaos:
    """Draws once an hour which nodes fail, how, and at which moment of that hour."""

    def __init__(self, kubelets: Kubelets, hazards: Hazards, *, seed: int = 0) -> None:
        self._kubelets = kubelets
        self._hazards = hazards
        self._draws = SeededDraws("chaos", seed)
        self._timers: set[asyncio.TimerHandle] = set()

    def start(self) -> None:
        """Start with the first hour."""
        self._later(0.0, self._draw)

    def stop(self) -> None:
        """Stop all failures."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _draw(self) -> None:
        for name in self._kubelets.living():
            for percent, strike in self._fates():
                if self._draws.happens(percent):
                    seconds = self._draws.below(round(_HOUR))
                    self._later(seconds, self._strike, name, strike)
                    break
        self._later(_HOUR, self._draw)

    def _fates(self) -> list[tuple[int, Callable[[str], None]]]:
        hazards = self._hazards
        return [
            (hazards.lost_percent, self._kubelets.lose),
            (hazards.away_percent, self._leave),
            (hazards.broken_percent, self._break),
            (hazards.reboot_percent, self._kubelets.reboot),
            (hazards.slow_percent, self._slow),
        ]

    def _strike(self, name: str, strike: Callable[[str], None]) -> None:
        if name in self._kubelets.living():
            strike(name)

    def _leave(self, name: str) -> None:
        self._kubelets.lose(name)
        self._later(self._hazards.away_seconds, self._return, name)

    def _return(self, name: str) -> None:
        if self._kubelets.is_lost(name):
            self._kubelets.recover(name)

    def _break(self, name: str) -> None:
        self._kubelets.trouble(name, BROKEN)

    def _slow(self, name: str) -> None:
        self._kubelets.slow(name, self._hazards.slowness)

    def _later(self, seconds: float, act: Callable[..., None], *args: object) -> None:
        def ring() -> None:
            self._timers.discard(timer)
            act(*args)

        timer = asyncio.get_running_loop().call_later(seconds, ring)
        self._timers.add(timer)
