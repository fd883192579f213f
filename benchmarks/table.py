"""The figures as text."""

from __future__ import annotations

import math

Figures = dict[str, dict[str, float]]


def table(figures: Figures, before: Figures | None) -> str:
    """Return the figures as text, beside earlier ones where there are some."""
    lines = []
    for name, each in figures.items():
        lines.append(name)
        for key, value in each.items():
            line = f"    {key:<30}{value:>10.2f}"
            earlier = (before or {}).get(name, {}).get(key)
            if earlier is not None:
                line += f"{earlier:>10.2f}{value / earlier if earlier else math.nan:>9.2f}x"
            lines.append(line)
    head = f"{'':<34}{'now':>10}" + (f"{'before':>10}{'ratio':>10}" if before is not None else "")
    return "\n".join([head, *lines])
