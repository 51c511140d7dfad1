"""Line charts as static SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from diopi_test.reporting.html.markup import Markup, join, tag

WIDTH, HEIGHT = 640, 180
"""The size of a chart in units of its `viewBox`, which the browser scales."""

LEFT_MARGIN, RIGHT_MARGIN, TOP_MARGIN, BOTTOM_MARGIN = 56, 12, 12, 24
"""The margins around the plotted area, in the same units; the labels of the axes are in them."""

SPARK_WIDTH, SPARK_HEIGHT = 120, 24
"""The size of a chart in a table cell, in units of its `viewBox`."""

COLORS = 6
"""The number of line colors that the style sheet defines."""


@final
@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a chart.

    Attributes:
        name: the name in the legend.
        values: the value of each point; None if a point has no value.
    """

    name: str
    values: Sequence[float | None]


def line_chart(title: str, labels: Sequence[str], lines: Sequence[Line]) -> Markup:
    """Return a figure with a line chart and its legend.

    Args:
        title: The title.
        labels: The label of each point.
        lines: The lines, each with one value per label.

    Returns:
        The figure.
    """
    top = max((value for line in lines for value in line.values if value is not None), default=0) or 1
    xs = _spread(len(labels), LEFT_MARGIN, WIDTH - RIGHT_MARGIN)
    base = HEIGHT - BOTTOM_MARGIN
    grid = [_grid_line(top * part, base - (base - TOP_MARGIN) * part) for part in (0, 0.5, 1)]
    paths_of_lines = [
        _line(line, [_height(value, top, TOP_MARGIN, base) for value in line.values], xs, labels, number % COLORS)
        for number, line in enumerate(lines)
    ]
    ends = [
        tag("text", label, x=x, y=HEIGHT - 6, text_anchor=anchor)
        for label, x, anchor in ((labels[0], LEFT_MARGIN, "start"), (labels[-1], WIDTH - RIGHT_MARGIN, "end"))
    ]
    svg = tag("svg", grid, paths_of_lines, ends, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=title)
    legend = [
        tag("li", tag("span", class_=f"swatch line-{number % COLORS}", aria_hidden="true"), line.name)
        for number, line in enumerate(lines)
    ]
    return tag("figure", tag("figcaption", title), svg, tag("ul", legend, class_="scale"), class_="chart")


def sparkline(values: Sequence[float | None], label: str) -> Markup:
    """Return a small line chart without axes for a table cell; `label` is its text for screen readers and tooltips."""
    top = max((value for value in values if value is not None), default=0) or 1
    xs = _spread(len(values), 3, SPARK_WIDTH - 3)
    ys = [_height(value, top, 3, SPARK_HEIGHT - 3) for value in values]
    line = _line(Line(name=label, values=values), ys, xs, [""] * len(values), 0)
    return tag("svg", line, viewBox=f"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}", class_="spark", role="img", aria_label=label)


def format_number(value: float) -> str:
    """Return a number with three significant digits, and whole numbers with commas between thousands."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"


def _spread(count: int, first: float, last: float) -> Sequence[float]:
    """Return `count` x coordinates at equal distances from `first` to `last`; the middle for a single position."""
    if count == 1:
        return [(first + last) / 2]
    return [round(first + (last - first) * number / (count - 1), 1) for number in range(count)]


def _height(value: float | None, top: float, upper: float, lower: float) -> float | None:
    """Return the y coordinate of a value; None without a value.

    Args:
        value: the value.
        top: the value at the upper end of the axis, which begins with 0.
        upper: the y coordinate of the upper end.
        lower: the y coordinate of 0.

    Returns:
        The coordinate, rounded to a tenth.
    """
    return None if value is None else round(lower - (lower - upper) * value / top, 1)


def _grid_line(value: float, y: float) -> Markup:
    """Return a horizontal grid line at the y coordinate `y`, with `value` as its label."""
    line = tag("line", x1=LEFT_MARGIN, x2=WIDTH - RIGHT_MARGIN, y1=y, y2=y, class_="grid-line")
    return join([line, tag("text", format_number(value), x=LEFT_MARGIN - 6, y=y + 4, text_anchor="end")])


def _line(line: Line, ys: Sequence[float | None], xs: Sequence[float], labels: Sequence[str], color: int) -> Markup:
    """Return the points of a line, with the value as a tooltip, and the line between them.

    Args:
        line: the line, which has gaps where values are missing.
        ys: the y coordinates of the points; None where values are missing.
        xs: the x coordinates of the points.
        labels: the labels of the points.
        color: the number of the color in the style sheet.

    Returns:
        The group of SVG elements.
    """
    parts: list[list[str]] = [[]]
    dots = []
    for value, x, y, label in zip(line.values, xs, ys, labels, strict=True):
        if value is None or y is None:
            parts.append([])
            continue
        parts[-1].append(f"{x},{y}")
        text = f"{label} {line.name}: {format_number(value)}".strip()
        dots.append(tag("circle", tag("title", text), cx=x, cy=y, r=2.5))
    paths = [tag("polyline", points=" ".join(points)) for points in parts if len(points) > 1]
    return tag("g", paths, dots, class_=f"line-{color}")
