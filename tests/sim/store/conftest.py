import pytest

from karpy.sim.store.store import Store
from tests.sim.store.worlds import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def store(clock: SetClock) -> Store:
    return Store(clock)
