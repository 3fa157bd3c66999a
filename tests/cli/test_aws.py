import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from karpy.wiring.checkup import NamedSettings
from tests.cli.conftest import Karpy


def test_the_set_up_is_a_template_unless_another_format_is_asked_for(karpy: Karpy) -> None:
    asked = karpy("aws", "setup", "--cluster", "shop", "--host", "node-group")

    template = yaml.safe_load(asked.out)
    assert asked.code == 0
    assert template["Resources"]["NodeRole"]["Properties"]["RoleName"] == "KarpenterNodeRole-shop"
    assert "OperatorNodeGroup" in template["Resources"]


def test_the_account_of_the_chart_is_let_in_unless_another_one_is_named(karpy: Karpy) -> None:
    asked = karpy("aws", "setup", "--cluster", "shop")

    # The chart names the account after the release; doctor looks for it in this namespace.
    links = [
        each["Properties"]
        for each in yaml.safe_load(asked.out)["Resources"].values()
        if each["Type"] == "AWS::EKS::PodIdentityAssociation"
    ]
    assert [(each["Namespace"], each["ServiceAccount"]) for each in links] == [
        (NamedSettings().namespace, "karpenter")
    ]


@pytest.mark.parametrize(
    ("form", "begins"),
    [("terraform", "# What"), ("eksctl", "# The parts"), ("cli", "#!/bin/sh")],
)
def test_every_format_can_be_asked_for(karpy: Karpy, form: str, begins: str) -> None:
    asked = karpy("aws", "setup", "--cluster", "shop", "--format", form)

    assert asked.code == 0
    assert asked.out.startswith(begins)


def test_an_invalid_name_is_refused_with_its_flag(karpy: Karpy) -> None:
    asked = karpy("aws", "setup", "--cluster", "shop", "--node-role", "a b")

    assert asked.code != 0
    assert "`--node-role` cannot be `a b`" in asked.err
    assert asked.out == ""


@pytest.fixture(scope="module")
def fake_environ() -> Iterator[dict[str, str]]:
    server = pytest.importorskip("karpy.adapters.clouds.awsfake.server")
    fake = server.AwsFake(server.FakeAccount("us-west-2", "shop", "1.34", ("m5", "c6g")))
    fake.start()
    yield fake.environ
    fake.stop()


def test_the_catalog_of_an_account_is_read_by_other_commands(
    karpy: Karpy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fake_environ: dict[str, str],
) -> None:
    for key, value in fake_environ.items():
        monkeypatch.setenv(key, value)
    path = str(tmp_path / "ec2.json")

    written = karpy("aws", "catalog", "--region", "us-west-2", "-o", path)
    listed = karpy("instances", "--catalog", path, "--arch", "arm64", "--output", "json")

    assert (written.code, written.out) == (0, "")
    assert "instance types of us-west-2" in written.err
    assert listed.code == 0
    found = {each["name"] for each in json.loads(listed.out)["instances"]}
    assert {each.partition(".")[0] for each in found} == {"c6g"}
