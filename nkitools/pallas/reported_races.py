"""Turns races that JAX's interpreters detect into findings: JAX prints them, or (0.12) raises."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator
from typing import Any, TypeAlias

from nkitools.pallas import jax_internals
from nkitools.pallas.jax_types import BufferKey
from nkitools.pallas.races import Access, WatchedRaces
from nkitools.pallas.vector_clocks import own_entries
from nkitools.rules.finding import Finding

_OF_GPU = "Wait for the copy (plgpu.barrier_wait, plgpu.wait_smem_to_gmem) or meet at a barrier between the two."
_OF_UNION = "Read a plgpu.RefUnion by the member that was written last, or write this member first."

Races: TypeAlias = dict[tuple[str, int], Finding]  # by file and line


def gpu_mode() -> Any:
    """Return the mode for interpreting a Mosaic GPU kernel; None if the installed JAX has no interpreter for it."""
    if jax_internals.moved(jax_internals.GPU):
        return None
    return jax_internals.gpu_parameters()(detect_races=True)


@contextlib.contextmanager
def reporting_races(mode: object) -> Iterator[Races]:
    """Collect the races inside the block, if ``mode`` asks JAX to detect races.

    JAX's interpreter must be reset after an error, that of GPUs after every run.
    """
    of_gpu = jax_internals.is_gpu_mode(mode)
    part = jax_internals.GPU if of_gpu else jax_internals.WATCH
    found: Races = {}
    if not getattr(mode, "detect_races", False) or jax_internals.moved(part):
        yield found
        return
    module, name = jax_internals.race_detector(of_gpu)
    ours = _GpuRaces if of_gpu else _TpuRaces
    detector = type(name, (ours, getattr(module, name)), {"found": found})
    clocks = contextlib.nullcontext() if of_gpu else own_entries()
    try:
        with jax_internals.replaced({(module, name): detector}), clocks:
            yield found
    except BaseException:
        jax_internals.reset_interpreter(of_gpu)
        raise
    if of_gpu:
        jax_internals.reset_interpreter(of_gpu)


class _TpuRaces(WatchedRaces):
    found: Races
    buffer = "a buffer of the TPU"
    remedy = ""

    def tell_race(self, key: BufferKey, this: Access, other: Access) -> None:
        """PL203, at the later of the two lines: its access should have waited."""
        first, last = sorted((this, other), key=lambda each: each.place.line)
        message = f"{self.buffer}: {first.text()} and {last.text()} may happen at once"
        self._tell("PL203", message, last, self.remedy)

    def _tell(self, rule: str, message: str, access: Access, remedy: str) -> None:
        finding = access.place.finding(rule, message, remedy=remedy)
        self.found.setdefault((finding.file, finding.line), finding)


class _GpuRaces(_TpuRaces):
    buffer = "a buffer of the GPU"
    remedy = _OF_GPU
    ref_union_members: dict[Any, tuple[Any, int]]  # the union of a buffer, and its group of members; since jax 0.11

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.in_unions: dict[Hashable, list[tuple[int, Access, Any]]] = {}

    def _check(self, key: BufferKey, this: Access, clock: Any) -> None:
        super()._check(key, this, clock)
        union, group = getattr(self, "ref_union_members", {}).get(key, (None, 0))
        if union is not None:
            with self.lock:
                earlier = list(self.in_unions.setdefault(union, []))
                self.in_unions[union].append((group, this, clock))
            self._check_union(group, this, clock, earlier)

    def _check_union(self, group: int, this: Access, clock: Any, earlier: list[tuple[int, Access, Any]]) -> None:
        """Compare with accesses by other members of the union, which share their memory."""
        last = next((each for each in reversed(earlier) if each[1].is_write), None)
        for each in earlier:
            its_group, other, its_clock = each
            if its_group == group or not (this.is_write or other.is_write):
                continue
            if not jax_internals.are_ordered(its_clock, clock):
                self.tell_race((), this, other)
                return
            if each is last and not this.is_write:
                what = f"a member of a RefUnion holds nothing: after {other.text()} by another member, {this.text()}"
                self._tell("PL207", what, this, _OF_UNION)
