"""Named bounds of a latency, by the words that profilers use for them, and the largest distances from it to them."""

from __future__ import annotations

from collections.abc import Sequence

from nkitools.facts.generations import Generation
from nkitools.record.time_estimate import EngineUse, Gap, PathLine, Roofline, TensorTraffic

_SHOWN = 3  # gaps


def named_bounds(
    engines: Sequence[EngineUse],
    traffic: Sequence[TensorTraffic],
    roof: Roofline,
    launch_us: float,
    chip: Generation,
    cores: int,
) -> dict[str, float]:
    """Return the microseconds that a kernel takes at least, each bound alone.

    Memory by the bytes that the kernel moves, and by each byte once; compute by its flops at the peak of bfloat16, and
    by each engine's own time; a perfect pipeline, whose busiest engine never waits; the launch.
    """
    bandwidth = chip.hbm_bytes_per_second * cores / 1e6
    once = sum(
        min(each.read_bytes, each.nbytes) + min(each.written_bytes, each.nbytes) for each in traffic if not each.spilled
    )
    peak = 2 * chip.partitions * chip.stationary_fmax * chip.clocks.tensor * 1e3 * cores
    busy: dict[str, float] = {}
    for each in engines:
        if each.engine not in ("dma", "sync") and (each.busy_us or each.engine == "tensor"):
            busy[each.engine] = max(each.busy_us, busy.get(each.engine, 0.0))
    return {
        "memory as written": roof.hbm_bytes / bandwidth,
        "memory with each byte once": once / bandwidth,
        "compute, ideal flops": roof.flops / peak,
        "compute, useful flops": busy.pop("tensor", 0.0),
        **{f"compute, {name} engine": us for name, us in busy.items()},
        "perfect pipeline": max(each.busy_us for each in engines),
        "launch": launch_us,
    }


def gaps(
    bounds: dict[str, float], engines: Sequence[EngineUse], path: Sequence[PathLine], latency_us: float, spill_us: float
) -> tuple[Gap, ...]:
    """Return the largest distances between the latency and bounds of it, each with its line.

    To the perfect pipeline: the critical path's time elsewhere than on the busiest engine, by the line with the most of
    it. To the roofs: the busiest engine's work beyond ideal flops, or each byte once.
    """
    busiest = max(engines, key=lambda each: each.busy_us)
    elsewhere = [each for each in path if each.engine != busiest.engine]
    there = [each for each in path if each.engine == busiest.engine]
    roof = max(bounds["memory with each byte once"], bounds["compute, ideal flops"])
    reloads = bounds["memory as written"] - bounds["memory with each byte once"]
    loads = [each for each in path if each.engine == "dma"]
    found = [
        ("perfect pipeline", latency_us - spill_us - bounds["launch"] - bounds["perfect pipeline"], elsewhere),
        (f"ideal work of the {busiest.engine} engine", bounds["perfect pipeline"] - roof, there),
        ("memory with each byte once", reloads, loads),
        ("no spills", spill_us, []),
        ("no launch", bounds["launch"], []),
    ]
    made = [_gap(name, us, lines, latency_us) for name, us, lines in found if us > 0]
    return tuple(sorted(made, key=lambda each: -each.us)[:_SHOWN])


def _gap(name: str, us: float, lines: Sequence[PathLine], latency_us: float) -> Gap:
    longest = max(lines, key=lambda each: each.us, default=None)
    return Gap(
        bound=name,
        us=us,
        share=us / latency_us,
        file="" if longest is None else longest.file,
        line=0 if longest is None else longest.line,
    )
