"""The panel with the current state: scene, pods, nodes and price."""

from collections.abc import Sequence
from typing import Final

from karpy.cli.show.board import Board, NodeCard
from karpy.cli.show.story import Story
from karpy.cli.tables import (
    Align,
    Column,
    bar,
    count_of,
    dollars,
    table,
    table_width,
)
from karpy.cli.terminal import Line, Span, Style, line
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.resources import CPU, MEMORY

_COLUMNS: Final = (
    Column("node"),
    Column("type"),
    Column("zone"),
    Column("capacity"),
    Column("$/h", Align.RIGHT),
    Column("pods"),
    Column("cpu"),
    Column("memory"),
)
_BAR_MIN: Final = 3
_BAR_MAX: Final = 10
_PROGRESS: Final = 18
_FIXED: Final = 5
"""Rows without a node: empty rows, scene, counts, head of the table."""


def panel_lines(story: Story, board: Board, width: int, rows_max: int) -> list[Line]:
    """Write the panel in at most `rows_max` rows; nodes without a row are counted."""
    cards = list(board.nodes.values())
    shown = cards[: max(0, rows_max - _FIXED)]
    hidden = len(cards) - len(shown)
    return [
        line(),
        _scene_line(story, board),
        _count_line(board),
        *_node_lines(shown, board, width),
        *([line(Span(f"and {count_of(hidden, 'more node')}", Style.QUIET))] if hidden else []),
        line(),
    ]


def _scene_line(story: Story, board: Board) -> Line:
    total = len(story.scenes)
    scene = story.scenes[min(story.place, total - 1)]
    filled = round(_PROGRESS * story.place / total)
    return line(
        Span("█" * filled, Style.GOOD),
        Span("░" * (_PROGRESS - filled), Style.QUIET),
        f"  {min(story.place + 1, total)} of {total}  ",
        Span(scene.title, Style.STRONG),
        Span(f"  {board.seconds:.0f} s", Style.QUIET),
    )


def _count_line(board: Board) -> Line:
    wanted = board.lasting_pods()
    running = sum(each.running is not None for each in wanted)
    pending = len(wanted) - running
    return line(
        Span("Pods ", Style.STRONG),
        f"{running} running, ",
        Span(f"{pending} pending", Style.CARE if pending else Style.PLAIN),
        Span("   Nodes ", Style.STRONG),
        f"{len(board.nodes)}",
        Span("   Cost ", Style.STRONG),
        Span(f"{dollars(board.price)}/h", Style.GOOD),
    )


def _node_lines(cards: Sequence[NodeCard], board: Board, width: int) -> list[Line]:
    if not cards:
        return []
    narrow = [_cells(each, board, 0) for each in cards]
    spare = (width - table_width(_COLUMNS, narrow)) // 2
    cells = min(_BAR_MAX, spare - 1) if spare > _BAR_MIN else 0
    return table(_COLUMNS, [_cells(each, board, cells) for each in cards])


def _cells(card: NodeCard, board: Board, cells: int) -> list[Line]:
    return [
        line(Span(card.name, Style.NAME)),
        line(card.instance_type),
        line(card.zone),
        line(card.capacity_type),
        line(f"{card.price / MICROS_PER_DOLLAR:.4f}"),
        _state(card, board),
        *(_fill(card, board, resource, cells) for resource in (CPU, MEMORY)),
    ]


def _state(card: NodeCard, board: Board) -> Line:
    if card.is_deleting:
        return line(Span("leaves", Style.BAD))
    if card.ready is None:
        return line(Span("boots", Style.CARE))
    if card.empty is not None:
        return line(Span(f"0, {board.seconds - card.empty:.0f} s", Style.CARE))
    return line(f"{len(board.pods_on(card))}")


def _fill(card: NodeCard, board: Board, resource: str, cells: int) -> Line:
    there = card.allocatable.get(resource, 0)
    return bar(board.used(card, resource) / there if there else 0.0, cells)
