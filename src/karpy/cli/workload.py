"""`karpy workload`: generate input for `karpy bench`."""

from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from karpy.bench.files import write_bytes
from karpy.bench.workloads import FAMILIES, SEED, Recipe, encode_workload, find_recipe
from karpy.cli.options import DONE, Injected
from karpy.cli.tables import Align, Column, table
from karpy.cli.terminal import Line, Span, Style, line

_COLUMNS: Final = (
    Column("file"),
    *(Column(title, Align.RIGHT) for title in ("pods", "bound", "nodes", "types", "MB")),
    Column("sha256 of the JSON"),
)
_DIGITS: Final = 16


def workload(
    names: Annotated[
        tuple[str, ...], Parameter(help="FAMILY-N, as diverse-1000; see --list.", negative=())
    ] = (),
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for the files.")] = Path(),
    seed: Annotated[int, Parameter(help="Another seed, another draw.")] = SEED,
    gz: Annotated[bool, Parameter(help="Write gzipped files.", negative=())] = False,
    show: Annotated[
        bool, Parameter(name="--list", help="List the families, as no name does.", negative=())
    ] = False,
    terminal: Injected,
) -> int:
    """
    Make workload files by NAMES: the same name and seed give the same bytes on every machine.

    A name is a family and a size, `real-2000`; `real-2000x100` limits the instance types to 100.
    Prices are synthetic, of no cloud's price list.
    """
    if show or not names:
        terminal.answer(_family_lines())
        return DONE
    recipes = [find_recipe(name) for name in names]
    rows = [_write(recipe, seed, out, is_gzipped=gz) for recipe in recipes]
    terminal.answer(table(_COLUMNS, rows))
    return DONE


def _write(recipe: Recipe, seed: int, out: Path, *, is_gzipped: bool) -> list[Line]:
    made = recipe.make(seed)
    data = encode_workload(made)
    path = write_bytes(out / f"{recipe.name}.json", data, is_gzipped=is_gzipped)
    bound = sum(1 for pod in made["pods"] if "nodeName" in pod["spec"])
    counts = (len(made["pods"]), bound, len(made["nodes"]), len(made["instanceTypes"]))
    size = f"{len(data) / 1e6:.1f}"
    digest = sha256(data).hexdigest()[:_DIGITS]
    return [
        line(Span(str(path), Style.NAME)),
        *(line(f"{count:,}") for count in counts),
        line(size),
        line(digest),
    ]


def _family_lines() -> list[Line]:
    columns = (Column("name"), Column("what it is"))
    rows = [
        [line(Span(f"{name}-N", Style.NAME)), line(each.about)] for name, each in FAMILIES.items()
    ]
    return table(columns, rows)
