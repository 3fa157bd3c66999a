"""What `python -m benchmarks.peer` makes of its runs."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from benchmarks.peer import __main__ as peer
from benchmarks.peer.measuring import KARPENTER, KARPY, Run, ScaleIn, command_of, price_of
from benchmarks.peer.scenarios import SCENARIOS
from benchmarks.peer.section import (
    TITLE,
    Pair,
    pairs,
    section_text,
)
from benchmarks.peer.usage import usage_of
from benchmarks.sections import section_of, with_section


def _run(operator: str, scenario: str = "basic-1000", **figures: float) -> Run:
    usual: dict[str, float] = {
        "ready": 1000,
        "seconds": 100.0,
        "cpu_s": 30.0,
        "peak_mib": 200.0,
        "dollars_per_hour": 70.0,
    }
    given = usual | figures
    return Run(
        operator,
        scenario,
        pods=1000,
        ready=int(given["ready"]),
        seconds=given["seconds"],
        first_claim_s=3.0,
        half_s=20.0,
        cpu_s=given["cpu_s"],
        peak_mib=given["peak_mib"],
        idle_mib=60.0,
        nodes=170,
        dollars_per_hour=given["dollars_per_hour"],
    )


def _good(scenario: str = "basic-1000", **figures: float) -> Run:
    reached = {"seconds": 50.0, "cpu_s": 15.0, "peak_mib": 100.0, "dollars_per_hour": 70.0}
    return _run(KARPY, scenario, **(reached | figures))


def _scaled_in(operator: str, **figures: float) -> Run:
    usual = {"seconds": 300.0, "cpu_s": 80.0, "dollars_per_hour": 50.0, "ready": 700}
    given = usual | figures
    done = ScaleIn(
        pods=700,
        ready=int(given["ready"]),
        seconds=given["seconds"],
        cpu_s=given["cpu_s"],
        nodes=130,
        dollars_per_hour=given["dollars_per_hour"],
        removed=60,
        replacements=17,
        is_settled=True,
    )
    return replace(_good() if operator == KARPY else _run(operator), scale_in=done)


@pytest.mark.parametrize(
    ("name", "deployments", "pods"),
    [("basic-1000", 2, 1000), ("mix-1000", 30, 925), ("mix-3000", 30, 2600), ("basic-200", 2, 200)],
)
def test_scenarios_have_as_many_pods_as_ever(name: str, deployments: int, pods: int) -> None:
    made = SCENARIOS[name].deployments

    assert len(made) == deployments
    assert sum(each["spec"]["replicas"] for each in made) == pods


def test_a_node_costs_what_kwok_says() -> None:
    labels = {
        "node.kubernetes.io/instance-type": "c-4x-amd64-linux",
        "karpenter.sh/capacity-type": "on-demand",
    }

    assert price_of({"metadata": {"labels": labels}}) == 0.10859


def test_the_time_and_memory_of_children_count() -> None:
    alone = usage_of(os.getpid())

    with subprocess.Popen(
        [sys.executable, "-c", "sum(range(10**7)); print(); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        together, childs = usage_of(os.getpid()), usage_of(child.pid)
        child.kill()

    assert childs.cpu_s > 0
    assert childs.peak_mib > 1
    assert together.cpu_s >= alone.cpu_s + childs.cpu_s
    assert together.peak_mib >= alone.peak_mib + childs.peak_mib


def test_our_share_is_enough_if_it_is_half() -> None:
    pair = Pair(_run(KARPENTER), _good())

    assert pair.missed == []
    assert [str(share) for share in pair.shares()] == [
        "0.50 (≤ 0.5)",
        "0.50 (≤ 0.5)",
        "0.50 (≤ 0.8)",
        "1.00 (≤ 1.0)",
    ]


@pytest.mark.parametrize(
    ("ours", "missed"),
    [
        (_good(seconds=51.0), ["time"]),
        (_good(cpu_s=15.4), ["CPU time"]),
        (_good(peak_mib=170.0), ["memory"]),
        (_good(dollars_per_hour=71.0), ["price"]),
        (_good(ready=999), ["time"]),
    ],
)
def test_what_is_missed_is_named(ours: Run, missed: list[str]) -> None:
    assert Pair(_run(KARPENTER), ours).missed == missed


def test_an_unfinished_run_has_no_price_and_only_a_bound_for_time() -> None:
    theirs = _run(KARPENTER, "mix-3000", ready=990, seconds=600.0)

    pair = Pair(theirs, _good("mix-3000"))

    time, _, memory, price = pair.shares()
    assert str(time).startswith("< 0.08")
    assert str(memory) == "0.50 (≤ 0.5)"
    assert str(price) == ""
    assert "not in 600 s: 990 run" in section_text([pair])


def test_a_scale_in_leaves_seven_of_ten_pods() -> None:
    assert SCENARIOS["basic-1000"].replicas_left == {"small": 350, "large": 350}
    assert sum(SCENARIOS["mix-1000"].replicas_left.values()) == 645


def test_our_share_of_a_scale_in_has_limits_of_its_own() -> None:
    ours = _scaled_in(KARPY, seconds=180.0, cpu_s=32.0, dollars_per_hour=51.5)

    pair = Pair(_scaled_in(KARPENTER), ours)

    assert pair.missed == []
    assert [str(share) for share in pair.scale_in_shares()] == [
        "0.60 (≤ 0.6)",
        "0.40 (≤ 0.4)",
        "1.03 (≤ 1.03)",
    ]
    section = section_text([pair])
    assert "| `basic-1000`, 700 pods left | Karpenter | 300.0 s | 80.0 s | 130 | 60" in section
    assert "| | Karpy | 180.0 s | 32.0 s | 130 | 60 | 17 | 51.50 |" in section


@pytest.mark.parametrize(
    ("figures", "missed"),
    [
        ({"seconds": 190.0}, "time of the scale-in"),
        ({"cpu_s": 40.0}, "CPU time of the scale-in"),
        ({"dollars_per_hour": 53.0}, "price after the scale-in"),
        ({"ready": 699}, "time of the scale-in"),
    ],
)
def test_what_a_scale_in_misses_is_named(figures: dict[str, float], missed: str) -> None:
    reached = {"seconds": 100.0, "cpu_s": 20.0, "dollars_per_hour": 50.0}

    pair = Pair(_scaled_in(KARPENTER), _scaled_in(KARPY, **(reached | figures)))

    assert pair.missed == [missed]


def test_a_run_without_a_scale_in_has_no_table_of_it() -> None:
    assert "scale-in" not in section_text([Pair(_run(KARPENTER), _scaled_in(KARPY))])


def test_of_several_scale_ins_the_median_counts() -> None:
    ours = [_scaled_in(KARPY, seconds=seconds) for seconds in (90.0, 200.0, 100.0)]

    (pair,) = pairs([_scaled_in(KARPENTER), *ours])

    assert pair.ours.scale_in is not None
    assert pair.ours.scale_in.seconds == 100.0


def test_of_several_rounds_the_median_counts() -> None:
    theirs = [_run(KARPENTER, seconds=seconds) for seconds in (90.0, 200.0, 100.0)]
    ours = [_good(seconds=seconds) for seconds in (40.0, 10.0, 30.0)]

    (pair,) = pairs([*theirs, *ours])

    assert (pair.theirs.seconds, pair.ours.seconds) == (100.0, 30.0)
    assert "`basic-1000`, 1,000 pods, 3 rounds |" in section_text([pair])


def test_a_run_without_its_peer_is_no_pair() -> None:
    assert pairs([_run(KARPENTER)]) == []


def test_the_section_has_its_place_on_the_page_and_keeps_it() -> None:
    page = "# Benchmarks\n\nabove\n\n## Run it yourself\n\nbelow\n"
    first = section_text([Pair(_run(KARPENTER), _good(seconds=20.0))])
    second = section_text([Pair(_run(KARPENTER), _good(seconds=30.0))])

    once = with_section(page, first)
    twice = with_section(once, second)

    assert section_of(page, TITLE) == ""
    assert section_of(once, TITLE) == first
    assert section_of(twice, TITLE) == second
    assert twice.count(TITLE) == 1
    assert twice.startswith("# Benchmarks\n\nabove\n\n## Beside Karpenter")
    assert twice.endswith("\n\n## Run it yourself\n\nbelow\n")


def test_runs_that_were_written_down_make_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, page = tmp_path / "runs.jsonl", tmp_path / "page.md"
    runs.write_bytes(msgspec.json.encode(_run(KARPENTER)) + b"\n" + msgspec.json.encode(_good()))
    page.write_text("## Run it yourself\n")

    code = peer.main(["--runs", str(runs), "--page", str(page)])

    assert code == 0
    assert "| `basic-1000`, 1,000 pods | Karpenter | 100.0 s | 30.0 s |" in page.read_text()
    assert "| | Karpy | 50.0 s | 15.0 s |" in capsys.readouterr().out


def test_another_program_in_place_of_karpy_is_never_shown_as_karpy(tmp_path: Path) -> None:
    runs, page = tmp_path / "runs.jsonl", tmp_path / "page.md"
    runs.write_bytes(msgspec.json.encode(_run(KARPENTER)) + b"\n" + msgspec.json.encode(_good()))
    page.write_text("## Run it yourself\n")

    peer.main(["--runs", str(runs), "--page", str(page), "--ours", "stranger"])

    assert page.read_text() == "## Run it yourself\n"


def test_karpy_is_the_one_we_run_from() -> None:
    assert command_of(KARPY, {}) == [sys.executable, "-m", "karpy", "run"]
    assert command_of(KARPY, {}, "other --flag") == ["other", "--flag"]
