from pathlib import Path

import pytest

from karpy.cli.catalogs import CATALOGS, NamedCatalog, find_catalog, usual_catalog
from karpy.cli.inputs import read_text
from karpy.codec.catalogs import kwok_catalog
from karpy.errors import ObjectNotFound
from karpy.model.instances import Catalog
from karpy.model.pools import NodePool
from karpy.model.records import NodeClassRef
from tests.cli.conftest import Karpy
from tests.cli.manifests import FITS


def test_a_catalog_is_found_by_name() -> None:
    assert find_catalog("kwok", read_text).catalog == kwok_catalog()


@pytest.mark.parametrize("name", ["ec9:us-east-1", "ec9"])
def test_a_name_that_no_catalog_has_is_told(name: str) -> None:
    with pytest.raises(ObjectNotFound) as caught:
        find_catalog(name, read_text)

    assert caught.value.hint == "name one of: kwok, or a file"


def test_each_pool_buys_where_its_node_class_says(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Catalog(kwok_catalog().types[:3], well_known=frozenset({"a/b"}))
    other = NamedCatalog("other", frozenset({("a", "B")}), lambda _: few)
    monkeypatch.setattr("karpy.cli.catalogs.CATALOGS", (*CATALOGS, other))
    pools = [NodePool("p"), NodePool("q", node_class=NodeClassRef("a", "B", "c"))]

    mixed, alone = usual_catalog(pools), usual_catalog(pools[1:])

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
    path.write_text(FITS.replace("KWOKNodeClass", "EC2NodeClass").replace("kwok.sh", "k8s.aws"))

    run = karpy("solve", str(path))

    assert run.code == 1
    assert "1 new node for 2 pods" in run.out
    assert "is EC2NodeClass: its nodes are EC2 machines" in run.err
