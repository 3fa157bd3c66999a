from datetime import timedelta

import pytest

from karpy.adapters.clouds.kwok.nodeclasses import NodeClass, read_node_class
from karpy.codec.fields import JsonObject


def ready(status: str, **words: str) -> JsonObject:
    return {"status": {"conditions": [{"type": "Ready", "status": status, **words}]}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({}, NodeClass()),
        ({"spec": {"nodeRegistrationDelay": "1m30s"}}, NodeClass(timedelta(seconds=90))),
        (ready("True"), NodeClass()),
        (ready("Unknown", message="wait"), NodeClass()),
        (ready("False", reason="Broken", message="no paper"), NodeClass(problem="no paper")),
        (ready("False", reason="Broken"), NodeClass(problem="Broken")),
        (ready("False"), NodeClass(problem="it does not say why")),
    ],
)
def test_a_node_class_is_read(obj: JsonObject, expected: NodeClass) -> None:
    assert read_node_class(obj) == expected
