"""A workload is a pure function of its name and seed."""

import os
import subprocess
import sys
from hashlib import sha256

import pytest

from karpy.bench.catalogs import cloud_types, linear_types
from karpy.bench.consolidation import Method, consolidate_once
from karpy.bench.workloads import FAMILIES, PROVISION, encode_workload, find_recipe
from karpy.codec.karpbench import read_workload
from karpy.errors import ObjectNotFound
from karpy.model.resources import add, fits

NAMES = tuple(f"{family}-40x30" for family in FAMILIES)
DIGEST = """
import sys
from hashlib import sha256
from karpy.bench.workloads import encode_workload, find_recipe
for name in sys.argv[1:]:
    print(name, sha256(encode_workload(find_recipe(name).make())).hexdigest())
"""


def _digests(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", DIGEST, *NAMES]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_hash_seeds_do_not_show_in_the_bytes() -> None:
    assert _digests("1") == _digests("2")


def test_the_bytes_of_a_name_and_seed_never_change() -> None:
    """Figures are quoted by workload name; a changed file would make them lie."""
    digests = {
        name: sha256(encode_workload(find_recipe(name).make())).hexdigest()[:16] for name in NAMES
    }

    assert digests == {
        "diverse-40x30": "88323725ba827759",
        "preference-40x30": "d9a2eaa2268e43fb",
        "real-40x30": "8cba243eaff6c45a",
        "mixed-40x30": "e1e4d84373d8c173",
        "idle-40x30": "03b0b3112d801dbc",
        "full-40x30": "c82f1f6a07a12a49",
        "adv-distinct-40x30": "f6782af039f8b22c",
        "adv-hostanti-40x30": "a1f463c5379b17dd",
        "adv-zonespread-40x30": "f119daaedb9e372a",
        "adv-prefs-40x30": "39dbd02e9c17895d",
        "adv-unschedulable-40x30": "003216e5500804f4",
        "adv-selectors-40x30": "94fd53df6b46e920",
    }


def test_another_seed_is_another_draw() -> None:
    recipe = find_recipe("diverse-40x10")

    assert recipe.make(seed=1)["pods"] != recipe.make(seed=2)["pods"]


@pytest.mark.parametrize("name", NAMES)
def test_every_family_can_be_read(name: str) -> None:
    snapshot = read_workload(find_recipe(name).make(), name)

    pending = [pod for pod in snapshot.pods if not pod.node_name]
    family, _, _ = name.rpartition("-")
    assert bool(pending) is (FAMILIES[family].kind == PROVISION)
    assert snapshot.pods
    assert all(pod.is_unschedulable for pod in pending)
    assert len(snapshot.catalog.types) == 30


@pytest.mark.parametrize("name", ["", "diverse", "diverse-", "diverse-0", "nothing-5", "real-5x0"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ObjectNotFound, match="KP1005") as caught:
        find_recipe(name)

    assert "diverse-N" in caught.value.hint


def test_the_size_is_the_number_in_the_name() -> None:
    made = find_recipe("diverse-43x7").make()

    assert (len(made["pods"]), len(made["instanceTypes"])) == (43, 7)


def test_the_mix_has_five_equal_parts_and_the_rest_is_free() -> None:
    pods = find_recipe("diverse-43x7").make()["pods"]

    spread_over = [
        pod["spec"]["topologySpreadConstraints"][0]["topologyKey"]
        for pod in pods
        if "topologySpreadConstraints" in pod["spec"]
    ]
    related = [next(iter(pod["spec"]["affinity"])) for pod in pods if "affinity" in pod["spec"]]
    assert spread_over == ["topology.kubernetes.io/zone"] * 8 + ["kubernetes.io/hostname"] * 8
    assert related == ["podAffinity"] * 8 + ["podAntiAffinity"] * 8


@pytest.mark.parametrize("name", ["mixed-30x60", "idle-30x60", "full-30"])
def test_running_nodes_hold_no_more_than_they_can(name: str) -> None:
    snapshot = read_workload(find_recipe(name).make(), name)

    requests = {
        node.name: add(*(pod.requests for pod in snapshot.pods if pod.node_name == node.name))
        for node in snapshot.nodes
    }

    assert len(snapshot.nodes) == 30
    assert all(fits(requests[node.name], node.allocatable) for node in snapshot.nodes)


def test_catalogs_have_distinct_names_and_something_on_sale() -> None:
    types = [*linear_types(), *cloud_types()]

    assert len({each["name"] for each in types}) == len(types) > 1000
    assert all(any(sold["available"] for sold in each["offerings"]) for each in types)
    assert all(sold["price"] > 0 for each in types for sold in each["offerings"])


def test_full_nodes_cannot_be_consolidated_and_many_idle_ones_can() -> None:
    full, idle = (read_workload(find_recipe(each).make(), each) for each in ("full-30", "idle-30"))

    assert [consolidate_once(full, method) for method in Method] == [None, None, None]
    several = consolidate_once(idle, Method.MULTI)
    assert several is not None
    assert len(several.nodes) > 10
