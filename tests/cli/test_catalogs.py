import json
from pathlib import Path

import pytest

from karpy.cli.catalogs import CATALOGS, NamedCatalog, find_catalog, usual_catalog
from karpy.cli.ec2supply import Needs
from karpy.cli.inputs import read_text
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.narrowing import Supply
from karpy.errors import ObjectNotFound
from karpy.model.instances import Catalog
from karpy.model.pools import NodePool
from karpy.model.records import NodeClassRef
from karpy.model.snapshot import Snapshot
from tests.builders.pods import NOON
from tests.cli.conftest import Karpy
from tests.cli.manifests import FITS


def needs(*pools: NodePool) -> Needs:
    return Needs(Snapshot(now=NOON, pools=pools))


def test_a_catalog_is_found_by_name() -> None:
    assert find_catalog("kwok", read_text)(needs()).catalog == kwok_catalog()


def test_a_catalog_of_a_region_is_found_by_name() -> None:
    supply = find_catalog("ec2:eu-west-1", read_text)(needs(NodePool("p")))

    assert (supply.name, supply.is_asked_for, supply.is_estimate) == ("ec2:eu-west-1", True, True)
    assert "m5.large" in {each.name for each in supply.catalog.types_for("p")}


@pytest.mark.parametrize("name", ["ec9:us-east-1", "ec9"])
def test_a_name_that_no_catalog_has_is_an_error(name: str) -> None:
    with pytest.raises(ObjectNotFound) as caught:
        find_catalog(name, read_text)

    assert caught.value.hint == "name one of: kwok, ec2, or a file"


def test_each_pool_buys_where_its_node_class_says(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Catalog(kwok_catalog().types[:3], well_known=frozenset({"a/b"}))
    other = NamedCatalog("other", frozenset({("a", "B")}), lambda *_: Supply("other", few))
    monkeypatch.setattr("karpy.cli.catalogs.CATALOGS", (*CATALOGS, other))
    first, second = NodePool("p"), NodePool("q", node_class=NodeClassRef("a", "B", "c"))

    mixed, alone = usual_catalog(needs(first, second)), usual_catalog(needs(second))

    assert (alone.name, alone.catalog) == ("other", few)
    assert mixed.name == "kwok, other"
    assert mixed.catalog.types_for("p") == kwok_catalog().types
    assert mixed.catalog.types_for("q") == few.types
    assert "a/b" in mixed.catalog.well_known


@pytest.mark.parametrize("words", [[], ["--catalog", "kwok"]])
def test_a_plan_names_its_catalog(karpy: Karpy, words: list[str]) -> None:
    run = karpy("solve", "-", *words, stdin=FITS)

    assert run.code == 0
    assert run.out.endswith("From  catalog kwok, 144 instance types\n")


def test_a_pool_of_another_cloud_fails_with_an_answer(karpy: Karpy, tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(FITS.replace("KWOKNodeClass", "AKSNodeClass").replace("kwok.sh", "azure.com"))

    run = karpy("solve", str(path))

    assert run.code == 1
    assert "1 new node for 2 pods" in run.out
    assert "is AKSNodeClass: its nodes are Azure machines" in run.err


def test_a_plan_for_machines_of_ec2_says_that_prices_are_estimates(karpy: Karpy) -> None:
    manifests = FITS.replace("KWOKNodeClass", "EC2NodeClass").replace("kwok.sh", "k8s.aws")

    text = karpy("solve", "-", stdin=manifests)
    answer = json.loads(karpy("solve", "-", "--output", "json", stdin=manifests).out)

    assert text.code == 0
    assert "From  catalog ec2:us-east-1 (estimated prices), 1,375 instance types\n" in text.out
    assert "note: instance types and prices of us-east-1 are those of a table" in text.err
    assert answer["catalog"] == {
        "name": "ec2:us-east-1",
        "instanceTypes": 1375,
        "isEstimate": True,
    }
