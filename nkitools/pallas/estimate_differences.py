"""The differences between choices of blocks, by their estimates: what makes one slower than another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nkitools.pallas.chips import MIB
from nkitools.pallas.time_estimate import KernelEstimate

_ALIKE = 1.05  # what differs by less is not named


def what_differs(slower: Sequence[KernelEstimate], fastest: Sequence[KernelEstimate], name: str) -> str:
    """Return how much longer the Pallas calls of one choice take than those of the fastest, ``name``, and why."""
    times = [sum(each.latency_us or 0.0 for each in those) for those in (slower, fastest)]
    ratio = times[0] / times[1] if times[1] else 1.0
    found = "; ".join(_differences(slower, fastest))
    return f"{_times(ratio)} the time of {name}" + (f": {found}" if found else "")


def _differences(slower: Sequence[KernelEstimate], fastest: Sequence[KernelEstimate]) -> Iterator[str]:
    computes, moves = (
        [sum(getattr(each, field) or 0.0 for each in those) for those in (slower, fastest)]
        for field in ("compute_us", "memory_us")
    )
    bounds = [" and ".join(sorted({each.bound for each in those})) for those in (slower, fastest)]
    if bounds[0] != bounds[1]:
        yield f"bound by {bounds[0]}, not {bounds[1]}"
    points = [sum(each.steps for each in those) for those in (slower, fastest)]
    if _differ(*computes):
        per_point = _times((computes[0] / points[0]) / (computes[1] / points[1]))
        yield (
            f"compute {computes[0]:.4g} us against {computes[1]:.4g} ({points[0]} grid points against {points[1]}, "
            f"{per_point} the cycles of one)"
        )
    if _differ(*moves):
        moved = [sum(each.hbm_bytes for each in those) / MIB for those in (slower, fastest)]
        yield f"HBM traffic {moved[0]:.4g} MiB against {moved[1]:.4g}"
    if len(slower) == len(fastest) == 1:
        yield from _of_one(slower[0], fastest[0])


def _of_one(slower: KernelEstimate, fastest: KernelEstimate) -> Iterator[str]:
    """Yield the differences within the instruction bundles of a function with one Pallas call."""
    shares = [each.units.get("MXU", 0.0) for each in (slower, fastest)]
    if _differ(*shares):
        yield f"MXU in {shares[0]:.0%} of its slots against {shares[1]:.0%}"
    spills = [each.spills or 0 for each in (slower, fastest)]
    if _differ(*spills):
        yield f"{spills[0]} bundles that spill against {spills[1]}"


def _differ(one: float, other: float) -> bool:
    low, high = sorted((one, other))
    return high > low * _ALIKE


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times"
