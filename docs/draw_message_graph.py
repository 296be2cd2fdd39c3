"""Draws `message_graph.svg` of `GRAPH` (`ding.worker.message_graph`); run it after a change."""

import math
from html import escape
from pathlib import Path

from ding.worker.message_graph import GRAPH, Arrow

#: Centre of each part, in pixels.
PLACES = {
    "Commander": (90, 60),
    "Coordinator": (90, 330),
    "CommCoordinator": (400, 480),
    "Core": (400, 170),
    "Buffers": (730, 60),
    "Control": (730, 520),
    "BaseCommCollector": (1060, 170),
    "BaseCommLearner": (1060, 420),
    "SampleStore": (1380, 90),
    "WeightStore": (1380, 340),
    "Artifacts": (1380, 520),
}
WIDTH, HEIGHT = 1480, 580
BOX = (156, 44)
LINE = 15


def svg() -> str:
    """The whole drawing."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" text-anchor="middle">',
            '<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="9" refY="4" '
            'orient="auto"><path d="M0,0 L9,4 L0,8 z" fill="#555"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            *map(_line, GRAPH),
            *map(_label, GRAPH),
            *map(_box, PLACES),
            "</svg>\n",
        ]
    )


def _ends(arrow: Arrow) -> tuple[float, float, float, float]:
    """Where an arrow leaves one box and reaches the other, a little aside of the way back."""
    (x1, y1), (x2, y2) = PLACES[arrow.source], PLACES[arrow.target]
    length = math.hypot(x2 - x1, y2 - y1)
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    # From the centre of a box to its edge.
    out = min(part / 2 / abs(d) for part, d in zip(BOX, (dx, dy)) if d)
    aside_x, aside_y = -9 * dy, 9 * dx
    start = x1 + dx * out + aside_x, y1 + dy * out + aside_y
    return *start, x2 - dx * out + aside_x, y2 - dy * out + aside_y


def _line(arrow: Arrow) -> str:
    x1, y1, x2, y2 = _ends(arrow)
    ends = f'x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"'
    return f'<line {ends} stroke="#555" stroke-width="1.5" marker-end="url(#tip)"/>'


def _label(arrow: Arrow) -> str:
    """What is said, near the beginning of the arrow; of methods, the class that has them."""
    said = list(dict.fromkeys(message.__qualname__.split(".")[0] for message in arrow.messages))
    x1, y1, x2, y2 = _ends(arrow)
    x, y = x1 + 0.3 * (x2 - x1), y1 + 0.3 * (y2 - y1) - LINE * (len(said) - 1) / 2
    spans = "".join(
        f'<tspan x="{x:.0f}" y="{y + LINE * i + 4:.0f}">{escape(name)}</tspan>'
        for i, name in enumerate(said)
    )
    halo = 'stroke="#fff" stroke-width="4" paint-order="stroke"'
    return f'<text font-size="12" fill="#333" {halo}>{spans}</text>'


def _box(name: str) -> str:
    (x, y), (width, height) = PLACES[name], BOX
    corner = f'x="{x - width / 2:.0f}" y="{y - height / 2:.0f}"'
    rect = f'<rect {corner} width="{width}" height="{height}" rx="6" fill="#eef" stroke="#99c"/>'
    return f'{rect}<text x="{x}" y="{y + 5}" font-size="15">{escape(name)}</text>'


if __name__ == "__main__":
    Path(__file__).with_name("message_graph.svg").write_text(svg(), encoding="utf-8")
