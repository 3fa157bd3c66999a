"""`karpy workload` and `karpy bench` as people run them."""

import io
import json
from pathlib import Path

import pytest

from karpy.cli.bench import breach_lines
from karpy.cli.main import execute
from karpy.cli.terminal import Channel, Terminal
from karpy.core.check.breaches import Breach, Rule


class CommandLine:
    """A terminal whose streams can be read afterwards."""

    def __init__(self) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()

    def run(self, *tokens: str) -> int:
        out, err = Channel(self.out, has_colour=False), Channel(self.err, has_colour=False)
        return execute(tokens, Terminal(io.StringIO(), out, err))


@pytest.fixture
def cli() -> CommandLine:
    return CommandLine()


def test_a_made_workload_can_be_measured(cli: CommandLine, tmp_path: Path) -> None:
    made = cli.run("workload", "diverse-20x10", "--out", str(tmp_path / "new"))
    table = cli.out.getvalue()
    measured = cli.run("bench", str(tmp_path / "new" / "diverse-20x10.json"), "--runs", "2")

    assert (made, measured) == (0, 0)
    assert "diverse-20x10.json" in table
    lines = cli.out.getvalue().removeprefix(table).splitlines()
    assert [json.loads(line)["workload"] for line in lines] == ["diverse-20x10"] * 2
    assert not cli.err.getvalue()


def test_gz_packs_the_same_bytes(cli: CommandLine, tmp_path: Path) -> None:
    cli.run("workload", "diverse-20x10", "--out", str(tmp_path))
    cli.run("workload", "diverse-20x10", "--out", str(tmp_path), "--gz")

    first, second = (line.split() for line in cli.out.getvalue().splitlines()[1::2])
    assert first[-1] == second[-1]
    assert (tmp_path / "diverse-20x10.json.gz").stat().st_size < 20_000


def test_without_a_name_the_families_are_listed(cli: CommandLine) -> None:
    code = cli.run("workload")

    assert code == 0
    assert "adv-selectors-N" in cli.out.getvalue()


def test_several_files_give_a_line_each(cli: CommandLine, tmp_path: Path) -> None:
    names = ["diverse-20x10", "preference-10x10"]
    cli.run("workload", *names, "--out", str(tmp_path))
    before = len(cli.out.getvalue())

    code = cli.run("bench", *(str(tmp_path / f"{name}.json") for name in names), "--no-check")

    lines = [json.loads(line) for line in cli.out.getvalue()[before:].splitlines()]
    assert code == 0
    assert [line["workload"] for line in lines] == names
    assert all("breaches" not in line for line in lines)


def test_no_file_is_made_if_one_name_is_wrong(cli: CommandLine, tmp_path: Path) -> None:
    code = cli.run("workload", "diverse-20x10", "nonsense-1", "--out", str(tmp_path))

    assert code == 1
    assert "KP1005" in cli.err.getvalue()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_created_is_an_error(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    code = cli.run("workload", "diverse-20x10", "--out", str(tmp_path / "file"))

    assert code == 1
    assert "cannot write" in cli.err.getvalue()
    assert "KP1006" in cli.err.getvalue()


def test_a_bad_file_is_an_error_with_its_code(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_text("{}")

    code = cli.run("bench", str(path))

    assert code == 1
    assert "KP1003" in cli.err.getvalue()
    assert not cli.out.getvalue()


def test_bench_without_a_file_is_misuse(cli: CommandLine) -> None:
    assert cli.run("bench") == 2
    assert cli.run("bench", "x.json", "--runs", "0") == 2


def test_the_first_rules_broken_are_named_and_the_rest_counted(cli: CommandLine) -> None:
    breaches = [Breach(Rule.TAINT, f"node-{number}", "a/b") for number in range(12)]

    Channel(cli.err, has_colour=False).write(
        breach_lines(Path("w.json"), [str(each) for each in breaches])
    )

    lines = cli.err.getvalue().splitlines()
    assert lines[:2] == ["w.json: the plan breaks 12 rules", "  TAINT node-0 a/b"]
    assert lines[-1] == "  and 2 more"
    assert len(lines) == 12


def test_a_file_that_cannot_be_read_does_not_lose_the_others(
    cli: CommandLine, tmp_path: Path
) -> None:
    cli.run("workload", "diverse-20x10", "--out", str(tmp_path))
    table = cli.out.getvalue()
    broken = tmp_path / "broken.json"
    broken.write_text('{"format": "karpbench/v1", "format": "karpbench/v2"}')

    good = str(tmp_path / "diverse-20x10.json")
    code = cli.run("bench", good, str(broken), str(tmp_path / "none.json"), good)

    lines = cli.out.getvalue().removeprefix(table).splitlines()
    assert code == 1
    assert [json.loads(line)["workload"] for line in lines] == ["diverse-20x10"] * 2
    assert cli.err.getvalue() == (
        f"error: `{broken}` is no karpbench/v1 workload: it cannot be read as JSON (has the key"
        " `format` twice in line 1) (KP1003)\n"
        "  hint: make one with `karpy workload NAME`, or see docs/benchmarks.md for the format\n"
        f"error: cannot read `{tmp_path / 'none.json'}`: No such file or directory (KP1002)\n"
        "  hint: check the path and its permissions\n"
    )
