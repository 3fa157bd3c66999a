"""The same objects in the same order are bound the same way, under any hash seed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from karpy.model.kinds import EVENT, POD
from karpy.model.labels import HOSTNAME, ZONE
from tests.sim.scheduler.stage import Stage, node, play, pod

ROOT = Path(__file__).parents[3]
SCRIPT = "from tests.sim.scheduler.test_determinism import story; print(story())"


def _busy_day() -> Stage:
    nodes = [node(f"n{each}", zone="abc"[each % 3], cpu="4") for each in range(9)]
    near = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "a1"}}}
    preference = [{"weight": 10, "podAffinityTerm": near}]
    spread = {
        "maxSkew": 2,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    }
    pods = [
        pod(
            f"p{each}",
            cpu=f"{100 * (each % 5 + 1)}m",
            labels={"app": f"a{each % 4}"},
            topologySpreadConstraints=[spread] if each % 3 == 0 else [],
            affinity={
                "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preference}
            }
            if each % 2
            else {},
        )
        for each in range(60)
    ]
    return play(*nodes[:5], *pods[:40], 2.0, *nodes[5:], *pods[40:], seconds=30)


def story() -> str:
    """Tell who went where, and what was said."""
    stage = _busy_day()
    bound = [
        (each["metadata"]["name"], each["spec"].get("nodeName")) for each in stage.store.list(POD)
    ]
    said = [(each["metadata"]["name"], each["message"]) for each in stage.store.list(EVENT)]
    return repr((bound, said))


def test_equal_runs_give_equal_events() -> None:
    assert story() == story()


@pytest.mark.parametrize("seed", ["0", "1"])
def test_hash_seeds_do_not_matter(seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}

    process = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert process.stdout.strip() == story()
