import asyncio
from datetime import timedelta

import pytest

from karpy.adapters.clouds.kwok.nodeclasses import KwokNodeClass, read_node_class
from karpy.codec.fields import JsonObject
from karpy.model.kinds import KWOK_NODE_CLASS
from karpy.sim.faults import InjectedFault
from tests.adapters.clouds.kwok.stage import kwok_stage, spec_of
from tests.sim.stories import on_virtual_time


def ready(status: str, **words: str) -> JsonObject:
    return {"status": {"conditions": [{"type": "Ready", "status": status, **words}]}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({}, KwokNodeClass()),
        ({"spec": {"nodeRegistrationDelay": "1m30s"}}, KwokNodeClass(timedelta(seconds=90))),
        (ready("True"), KwokNodeClass()),
        (ready("Unknown", message="wait"), KwokNodeClass()),
        (ready("False", reason="Broken", message="no paper"), KwokNodeClass(problem="no paper")),
        (ready("False", reason="Broken"), KwokNodeClass(problem="Broken")),
        (ready("False"), KwokNodeClass(problem="it does not say why")),
    ],
)
def test_a_node_class_is_read(obj: JsonObject, expected: KwokNodeClass) -> None:
    assert read_node_class(obj) == expected


@on_virtual_time
async def test_launches_at_the_same_time_ask_for_their_class_once() -> None:
    slowly = InjectedFault(calls=("get",), kind=KWOK_NODE_CLASS, delay_seconds=0.5)
    async with kwok_stage(slowly) as stage:
        specs = [spec_of(f"c{number}") for number in range(5)]
        machines = await asyncio.gather(*map(stage.provider.launch, specs))

        asked = [call for call in stage.faults.history if str(KWOK_NODE_CLASS) in call]
        assert (len({each.provider_id for each in machines}), len(asked)) == (5, 1)
