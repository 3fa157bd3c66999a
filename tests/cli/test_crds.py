import json

import pytest
import yaml

from karpy.codec.schemas.definitions import CUSTOM_KINDS
from tests.cli.conftest import Karpy


def test_all_definitions_are_printed(karpy: Karpy) -> None:
    run = karpy("crds")

    assert run.code == 0
    assert list(yaml.safe_load_all(run.out)) == [each.to_json() for each in CUSTOM_KINDS]


@pytest.mark.parametrize("name", ["nodeoverlays", "NodeOverlay", "overlays"])
def test_a_definition_is_found_by_any_of_its_names(karpy: Karpy, name: str) -> None:
    run = karpy("crds", name)

    assert [each["metadata"]["name"] for each in yaml.safe_load_all(run.out)] == [
        "nodeoverlays.karpenter.sh"
    ]


def test_json_is_a_list_that_kubectl_takes(karpy: Karpy) -> None:
    answer = json.loads(karpy("crds", "nodepools", "nodeclaims", "--output", "json").out)

    assert answer["kind"] == "List"
    assert [each["spec"]["names"]["kind"] for each in answer["items"]] == ["NodePool", "NodeClaim"]


def test_a_name_that_does_not_exist_is_an_error(karpy: Karpy) -> None:
    run = karpy("crds", "provisioners")

    assert run.code == 1
    assert "there is no custom resource `provisioners`" in run.err
    assert "nodepools" in run.err
