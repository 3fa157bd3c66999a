"""kube-apiserver takes what a conversion writes, comments and all, and knows each of its fields."""

import json
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings

from karpy.adapters.controlplane.plane import ControlPlane
from karpy.codec.convert.conversion import Conversion
from karpy.codec.convert.drafts import NamedCluster
from karpy.codec.convert.yamltexts import write_products
from karpy.codec.fields import JsonObject
from tests.codec.convert.groups import NODE_GROUP, SCALING_GROUP
from tests.codec.convert.manifests import (
    CLAIM,
    COMMENTED,
    NODE_CLASS,
    NODE_TEMPLATE,
    POOL,
    PROVISIONER,
    SELECTING_CLASS,
    WITH_PROVIDER,
)
from tests.codec.convert.test_clusterfile import FILE
from tests.codec.convert.test_properties import calls, of
from tests.codec.convert.texts import converted, proposed
from tests.controlplane.waiting import wait_until

CRDS: Final = Path(__file__).parents[2] / "deploy" / "crds"
SHOP: Final = NamedCluster("shop")
EXAMPLES: Final = 25


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> ControlPlane:
    """A control plane with the CustomResourceDefinitions of today."""
    control_plane.restart_ended()
    control_plane.kubectl("apply", "--server-side", "-f", str(CRDS))
    control_plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    wait_until(lambda: not control_plane.try_kubectl("get", "nodepools,ec2nodeclasses").code)
    return control_plane


def judged(server: ControlPlane, conversion: Conversion) -> tuple[str, int]:
    """Return what the API server has against objects, and how many it would take."""
    text = write_products(conversion.products)
    words = ("create", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-")
    answer = server.try_kubectl(*words, stdin=text)
    return answer.err, len(answer.out.splitlines())


@pytest.mark.parametrize(
    "conversion",
    [
        converted(PROVISIONER, NODE_TEMPLATE),
        converted(WITH_PROVIDER),
        converted(COMMENTED, role="Nodes"),
        converted(COMMENTED),
        converted(POOL, CLAIM, NODE_CLASS),
        converted(SELECTING_CLASS),
        converted(FILE),
        proposed(json.dumps([{"nodegroup": NODE_GROUP}]), cluster=SHOP),
        proposed(json.dumps({"AutoScalingGroups": [SCALING_GROUP]}), cluster=SHOP),
    ],
    ids=[
        "node template",
        "provider",
        "comments",
        "no role",
        "v1beta1",
        "class",
        "file",
        "group",
        "asg",
    ],
)
def test_converted_objects_are_valid(server: ControlPlane, conversion: Conversion) -> None:
    assert len(conversion.objects) >= 1
    assert judged(server, conversion) == ("", len(conversion.objects))


def test_converted_objects_are_accepted_by_the_api_server(server: ControlPlane) -> None:
    """A sample of the property that the fast tests check with Karpy's own validator."""

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(calls.filter(bool))
    def is_taken(objects: list[JsonObject]) -> None:
        conversion = of(objects)
        assert judged(server, conversion) == ("", len(conversion.objects))

    is_taken()
