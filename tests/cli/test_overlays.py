"""NodeOverlays are applied wherever a snapshot is read, and only once."""

import json
from pathlib import Path
from typing import Final

import pytest

from karpy.adapters.journal import JournalFiles
from karpy.core.scheduling.decide import decide
from karpy.core.scheduling.overlays import with_overlays
from karpy.model.settings import Settings
from tests.builders import overlay, pod, snapshot
from tests.cli.conftest import Karpy
from tests.cli.manifests import FITS, NODE, POOL, stream
from tests.cli.manifests import pod as pod_manifest

OVERLAY: Final = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata:
  name: half-price
spec:
  requirements: []
  priceAdjustment: "-50%"
"""
DEVICES: Final = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata:
  name: devices
spec:
  requirements: []
  capacity: {example.com/fuse: "10"}
"""
RAW = snapshot(
    pods=[pod("web")],
    overlays=[overlay("half", price_adjustment="-50%")],
    settings=Settings(node_overlay=True),
)


def _price(karpy: Karpy, *documents: str) -> float:
    run = karpy("solve", "-", "--output", "json", stdin=stream(*documents))
    price = json.loads(run.out)["dollarsPerHour"]
    assert isinstance(price, float)
    return price


def test_a_plan_has_the_prices_of_the_overlays_among_the_manifests(karpy: Karpy) -> None:
    assert _price(karpy, FITS, OVERLAY) == pytest.approx(_price(karpy, FITS) / 2, abs=1e-6)


def test_an_explanation_counts_the_resources_of_overlays(karpy: Karpy) -> None:
    wants = pod_manifest("web").replace("cpu:", "example.com/fuse: 1, cpu:")
    assert "example.com/fuse" in wants

    explained = [
        karpy("explain", "shop/web", "-", "--output", "json", stdin=stream(POOL, NODE, wants, each))
        for each in ("", DEVICES)
    ]

    outcomes = [json.loads(each.out)["outcome"] for each in explained]
    assert outcomes == ["REFUSED", "NEW_NODE"]


def test_a_recorded_decision_is_made_again_on_the_catalog_that_it_saw(
    karpy: Karpy, tmp_path: Path
) -> None:
    """Overlays are in the recorded catalog; they are not applied to it a second time."""
    corrected = with_overlays(RAW)
    journal = JournalFiles(tmp_path, file_bytes=10**9, files=1)
    journal.record(corrected, decide(corrected))
    journal.close()

    assert karpy("replay", str(tmp_path)).code == 0


def test_a_journal_of_raw_catalogs_and_overlays_can_still_be_replayed(
    karpy: Karpy, tmp_path: Path
) -> None:
    journal = JournalFiles(tmp_path, file_bytes=10**9, files=1)
    journal.record(RAW, decide(with_overlays(RAW)))
    journal.close()

    assert karpy("replay", str(tmp_path)).code == 0
    assert karpy("explain", "web", str(tmp_path)).code == 0
