"""Pictures by matplotlib, an extra: files, colours, legends."""

import html
import io
import os
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any

from ding.utils.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

#: Where a picture can go.
FORMATS = (".png", ".pdf", ".svg", ".html")
#: Ten colours and four kinds of lines, as on the board: twenty pairs that also differ in grey.
COLOURS = (
    *("#3b6ef5", "#e8710a", "#12a36d", "#c2438f", "#8559e0"),
    *("#0f9fb5", "#d43f3a", "#9a7d0a", "#5f6f81", "#7a4a21"),
)
LINES = ("-", "--", ":", "-.")
#: Of a column of labels that may be longer than this, a legend has one.
_LEGEND_WIDTH = 75
_BAND = 0.15


def save_picture(
    path: str | os.PathLike[str], title: str, text: str, draw: "Callable[[Figure], None]"
) -> None:
    """Draw a figure into a file.

    Args:
        path: Ends with ``.png``, ``.pdf``, ``.svg`` or ``.html`` (with a text, in one file).
        title: Of the page.
        text: Of the page, such as a table.
        draw: Sets the size of an empty figure, and draws.

    Raises:
        ConfigError: Another ending, or matplotlib is not installed.
    """
    path = os.fspath(path)
    ending = os.path.splitext(path)[1].lower()
    if ending not in FORMATS:
        raise ConfigError(f"cannot draw into {path!r}: expected a name with {listed(FORMATS)}")
    if ending != ".html":
        _save(path, ending[1:], draw)
        return
    picture = io.BytesIO()
    _save(picture, "svg", draw)
    svg = picture.getvalue().decode()
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html>\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
            f"{svg[svg.index('<svg') :]}\n<pre>{html.escape(text)}</pre>\n"
        )


def _save(file: str | IO[bytes], format: str, draw: "Callable[[Figure], None]") -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("pictures need matplotlib: pip install 'ding[plot]'") from error
    figure = Figure()
    figure.set_layout_engine("constrained")
    draw(figure)
    figure.savefig(file, dpi=150, format=format)


def line_style(i: int) -> dict[str, str]:
    """Colour and kind of the line with this number; the first twenty differ."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i % len(LINES)]}


def draw_line(axes: "Axes", i: int, x: Any, mean: Any, low: Any, high: Any, label: str) -> None:
    """The line with this number, and a band around it."""
    style = line_style(i)
    axes.plot(x, mean, linewidth=2, label=label, **style)  # type: ignore[arg-type]
    axes.fill_between(x, low, high, color=style["color"], alpha=_BAND, linewidth=0)


def tidy(axes: "Axes") -> None:
    """A light grid, and no lines above and at the right."""
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend_below(axes: "Axes") -> None:
    """A legend below a panel, where it hides no line."""
    labels = axes.get_legend_handles_labels()[1]
    columns = max(1, min(4, _LEGEND_WIDTH // (8 + max(map(len, labels)))))
    axes.legend(
        frameon=False,
        fontsize="small",
        ncols=columns,
        handlelength=2.6,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
    )


def shared_legend(figure: "FigureBase", panels: "Sequence[Axes]", width: float) -> None:
    """One legend below panels, with a line for each label; `width` of the figure in inches."""
    lines: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        lines |= dict(zip(labels, handles, strict=True))
    columns = max(1, min(6, int(10 * width) // (8 + max(map(len, lines)))))
    figure.legend(
        *(lines.values(), lines.keys()),
        frameon=False,
        fontsize="small",
        ncols=columns,
        handlelength=2.6,
        loc="outside lower center",
    )


def listed(words: Sequence[str]) -> str:
    """``a, b or c``."""
    return f"{', '.join(words[:-1])} or {words[-1]}"
