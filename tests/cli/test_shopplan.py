import json
import re

from syrupy.assertion import SnapshotAssertion

from karpy.cli.examples import SHOP, example_documents
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.manifests import read_manifests
from karpy.core.check.plan import check_plan
from karpy.core.scheduling.decide import decide
from karpy.model.settings import Settings
from tests.builders import NOON
from tests.cli.conftest import Karpy


def timeless(text: str) -> str:
    """Remove the duration, which differs between runs."""
    return re.sub(r"decided in [0-9,.]+ ms", "decided in N ms", text)


def test_the_plan_shows_the_shop(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy("demo", "--plan")

    assert (run.code, run.err) == (0, "")
    assert max(len(each) for each in run.out.splitlines()) <= 100
    assert timeless(run.out) == snapshot


def test_the_plan_of_the_shop_breaks_no_rule() -> None:
    reading = read_manifests(
        example_documents(SHOP), catalog=kwok_catalog(), settings=Settings(), now=NOON
    )

    assert (reading.problems, reading.notes) == ((), ())
    assert check_plan(reading.snapshot, decide(reading.snapshot)) == ()


def test_the_plan_is_complete_in_ascii(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy("demo", "--plan", encoding="ascii")

    assert run.out.isascii()
    assert timeless(run.out) == snapshot


def test_colour_changes_nothing_but_colour(karpy: Karpy) -> None:
    plain, coloured = karpy("demo", "--plan"), karpy("demo", "--plan", has_colour=True)

    stripped = "\n".join(
        each.rstrip() for each in re.sub(r"\x1b\[\d+m", "", coloured.out).split("\n")
    )
    assert "\x1b[" in coloured.out
    assert timeless(stripped) == timeless(plain.out)


def test_json_says_the_same(karpy: Karpy) -> None:
    run = karpy("demo", "--plan", "--output", "json")

    answer = json.loads(run.out)
    assert (run.code, run.err) == (0, "")
    assert answer["summary"]["podsPending"] == 1
    assert [each["pod"] for each in answer["explanations"]] == ["ml/trainer"]
    assert answer["onDemandOnly"]["dollarsPerHour"] > answer["summary"]["dollarsPerHour"]


def test_the_manifests_are_printed(karpy: Karpy) -> None:
    manifests = karpy("demo", "--manifests")

    run = karpy("solve", "-", "--output", "json", stdin=manifests.out)

    assert (run.code, run.err) == (3, "")
    assert (
        json.loads(run.out)["summary"]
        == json.loads(karpy("demo", "--plan", "--output", "json").out)["summary"]
    )


def test_the_shop_is_part_of_the_package() -> None:
    assert [name for name, _ in example_documents(SHOP)] == [
        "shop/00-nodepools.yaml",
        "shop/10-platform.yaml",
        "shop/20-storefront.yaml",
        "shop/30-data.yaml",
        "shop/40-batch.yaml",
    ]
