"""Plots with matplotlib (an extra): files, colours, legends."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ding.utils.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase
    from numpy.typing import ArrayLike

#: Supported file formats.
FORMATS = (".png", ".pdf", ".svg")
#: Ten colours and four line styles, as on the board: twenty pairs that also differ in greyscale.
COLOURS = (
    *("#3b6ef5", "#e8710a", "#12a36d", "#c2438f", "#8559e0"),
    *("#0f9fb5", "#d43f3a", "#9a7d0a", "#5f6f81", "#7a4a21"),
)
LINES = ("-", "--", ":", "-.")
#: Legend: characters per inch, width of a line sample in characters, height of a row in inches.
_CHARACTERS, _LINE, _ROW = 14, 9, 0.19
_LEGEND = {"frameon": False, "fontsize": "small", "handlelength": 2.6}
_BAND = 0.15


def save_picture(path: str | os.PathLike[str], draw: "Callable[[Figure], None]") -> None:
    """Draw a figure and save it to a file.

    Args:
        path: A path that ends with ``.png``, ``.pdf`` or ``.svg``.
        draw: Sets the size of an empty figure, and draws on it.

    Raises:
        ConfigError: The path has another ending, its folder does not exist, or matplotlib is not
            installed.
    """
    path = os.fspath(path)
    ending = os.path.splitext(path)[1].lower()
    if ending not in FORMATS:
        raise ConfigError(f"cannot draw into {path!r}: expected a name with {listed(FORMATS)}")
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise ConfigError(f"there is no folder {folder!r} for {path}: make it, or choose another")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("pictures need matplotlib: pip install 'ding[plot]'") from error
    figure = Figure()
    figure.set_layout_engine("constrained")
    draw(figure)
    figure.savefig(path, dpi=150)


def draw_line(
    axes: "Axes",
    i: int,
    x: "ArrayLike",
    mean: "ArrayLike",
    low: "ArrayLike",
    high: "ArrayLike",
    label: str,
) -> None:
    """Draw a curve with a band, in the style of index `i`."""
    # The first twenty styles differ.
    style = {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i % len(LINES)]}
    axes.plot(x, mean, linewidth=2, label=label, **style)  # type: ignore[arg-type]
    axes.fill_between(x, low, high, color=style["color"], alpha=_BAND, linewidth=0)


def tidy(axes: "Axes") -> None:
    """Draw a light grid, and hide the upper and right axis lines."""
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def shared_legend(figure: "FigureBase", panels: "Sequence[Axes]", width: float) -> None:
    """Draw one legend below the panels, with each label once; `width` of the figure in inches."""
    lines: dict[str, Artist] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        lines |= dict(zip(labels, handles, strict=True))
    columns = _columns(lines, width)
    figure.legend(
        list(lines.values()), list(lines), loc="outside lower center", ncols=columns, **_LEGEND
    )


def legend_height(labels: Sequence[str], width: float) -> float:
    """Height in inches of a legend with these labels."""
    return _ROW * -(-len(labels) // _columns(labels, width))


def _columns(labels: Iterable[str], width: float) -> int:
    return max(1, min(6, int(_CHARACTERS * width) // (_LINE + max(map(len, labels)))))


def listed(words: Sequence[str]) -> str:
    """``a, b or c``."""
    return f"{', '.join(words[:-1])} or {words[-1]}"
