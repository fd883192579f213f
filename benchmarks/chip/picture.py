"""The picture of docs/explanation/time.md: estimated over measured time by family, before laws of profiles and now."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from benchmarks.chip.figures import Judged, by_family, quantiles

# The tenth, the median and the ninetieth percentile of each family by nkitools before it had laws of profiles.
BEFORE = {
    "matmul, modern, no spill": (0.948, 1.017, 1.090),
    "matmul, modern, spilled": (0.781, 1.015, 1.114),
    "MLP, legacy": (1.118, 1.517, 4.945),
    "attention, legacy": (0.760, 0.831, 0.996),
    "tiled matmul, legacy": (0.962, 1.915, 4.999),
}
_STYLE = (
    "text{fill:#1d2b40}.axis{stroke:#c3ccd9}.before{stroke:#b9803a;fill:#b9803a}.now{stroke:#2f6db5;fill:#2f6db5}"
    "@media (prefers-color-scheme: dark){text{fill:#e8eef8}.axis{stroke:#3b4860}.before{stroke:#e0b070;fill:#e0b070}"
    ".now{stroke:#86b4ec;fill:#86b4ec}}"
)
_LABEL = (
    "Estimated over measured time by family: the tenth, the median and the ninetieth percentile, before the laws of "
    "profiles and with them"
)
_TOP, _ROW = 49, 38  # of the first family's name, and between two


def picture(judged: Sequence[Judged]) -> str:
    """Return the picture as SVG."""
    bottom = _TOP + _ROW * len(BEFORE) - 19
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {bottom + 40}" font-family="system-ui, sans-serif" '
        f'font-size="13" role="img" aria-label="{_LABEL}">',
        f"<style>{_STYLE}</style>",
    ]
    for ratio in (0.5, 1, 2, 4, 8):
        x = f"{_x(ratio):.0f}"
        lines.append(
            f'<line class="axis" x1="{x}" y1="20" x2="{x}" y2="{bottom}"/>'
            f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{ratio}</text>'
        )
    lines.append(f'<text x="440" y="{bottom + 35}" text-anchor="middle">estimated over measured</text>')
    families = by_family(judged)
    for number, (family, before) in enumerate(BEFORE.items()):
        y = _TOP + _ROW * number
        lines.append(f'<text x="205" y="{y}" text-anchor="end">{family}</text>')
        lines.append(_bar("before", before, y - 9))
        if family in families:
            lines.append(
                _bar("now", quantiles([mine / chip for chip, mine in (each.times for each in families[family])]), y + 3)
            )
    lines.append('<text x="560" y="14">orange before, blue now</text></svg>')
    return "\n".join(lines) + "\n"


def _x(ratio: float) -> float:
    return 385 + 110 * log2(ratio)


def _bar(name: str, shares: tuple[float, float, float], y: int) -> str:
    low, middle, high = (f"{_x(each):.1f}" for each in shares)
    line = f'<line class="{name}" x1="{low}" y1="{y}" x2="{high}" y2="{y}" stroke-width="3"/>'
    return f'{line}<circle class="{name}" cx="{middle}" cy="{y}" r="5"/>'
