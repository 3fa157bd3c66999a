"""The section of the benchmarks' page about nodes in use."""

import json
from pathlib import Path

import pytest

from benchmarks.consolidating import TITLE, Figure, ask, measure, read_figures, section_text
from karpy.bench.files import write_bytes
from karpy.bench.workloads import encode_workload, find_recipe


def test_recorded_lines_become_medians_by_method(tmp_path: Path) -> None:
    def line(seconds: float, savings: float, **more: object) -> str:
        decision = {"method": "multi", "candidate_s": 0.5, "decision_s": seconds}
        decision |= {"removed": ["a", "b"], "savings": savings, "hit_timeout": False, **more}
        return json.dumps({"workload": "w", "converge": False, "decisions": [decision]})

    lines = [line(1.0, 5.0), line(3.0, 7.0), line(4.0, 9.0), line(60.0, 0.0, hit_timeout=True)]
    path = tmp_path / "consolidate.jsonl"
    path.write_text("\n".join(lines))

    assert read_figures(path) == {("w", "multi"): Figure(3.5, 2, 7.0)}


def test_the_section_says_what_goes_what_it_saves_and_that_it_is_sound(tmp_path: Path) -> None:
    made = encode_workload(find_recipe("idle-6x60").make())
    path = write_bytes(tmp_path / "idle-6.json", made, is_gzipped=False)
    runs, converged = measure(path, rounds=1), measure(path, rounds=1, converges=True)
    (run,) = runs
    several = next(each for each in run.decisions if each.method == "multi")
    figures = {("idle-6", "multi"): Figure(9.0, 2, 1.25)}

    asked = ask(path, rounds=1)

    text = section_text(
        {"idle-6": runs}, converged, asked, {"idle-6": runs}, figures, "python -m x"
    )

    assert text.startswith(f"{TITLE}\n")
    assert "$ python -m x" in text
    assert f"| `idle-6` | 6 | {run.pods} | {run.cost:,.2f} |" in text
    assert f"| {len(several.removed)} | {several.savings:,.2f} |" in text
    assert "| 9.0 s |" in text
    assert "| 2 |" in text
    assert f"to {converged[0].nodes_after} for {converged[0].cost_after:.2f} $/h" in text.replace(
        "\n", " "
    )
    assert text.count("sound") == 3
    assert "Once `idle-6` is read and made ready for the solver, 6 questions" in text
    assert converged[0].cost_after == pytest.approx(
        converged[0].cost - sum(each.savings for each in converged[0].decisions), abs=1e-6
    )
