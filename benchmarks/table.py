"""The figures as text."""

from __future__ import annotations

import math
from typing import Any

Figures = dict[str, dict[str, float]]


def table(figures: Figures, before: Figures | None) -> str:
    """Return the figures as text, beside earlier ones where there are some."""
    lines = []
    for name, each in figures.items():
        lines.append(name)
        for key, value in each.items():
            line = f"    {key:<54}{value:>10.2f}"
            earlier = (before or {}).get(name, {}).get(key)
            if earlier is not None:
                line += f"{earlier:>10.2f}{value / earlier if earlier else math.nan:>9.2f}x"
            lines.append(line)
    head = f"{'':<58}{'now':>10}" + (f"{'before':>10}{'ratio':>10}" if before is not None else "")
    return "\n".join([head, *lines])


_COLUMNS = ("NumPy ms", "over NumPy", "over tiles", "page faults")


def markdown(figures: Figures, machine: dict[str, Any]) -> str:
    """Return the figures as the tables of the page about speed, under the machine that they were measured on."""
    lines = [
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
        f"NumPy {machine['numpy']}, {machine['blas']}.",
        "",
        f"| workload | {' | '.join(_COLUMNS)} |",
        f"|---|{'---:|' * len(_COLUMNS)}",
    ]
    others = []
    for name, each in figures.items():
        if "over NumPy" in each:
            cells = [_cell(each, key) for key in _COLUMNS]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        elif not name.startswith("peak"):
            others += [f"| {name}: {key} | {value:.2f} |" for key, value in each.items()]
    return "\n".join([*lines, "", "| | |", "|---|---:|", *others])


def _cell(figures: dict[str, float], key: str) -> str:
    """Return one figure of a workload; nothing for a figure that a mean has not."""
    return f"{figures[key]:.{0 if key == 'page faults' else 2}f}" if key in figures else ""
