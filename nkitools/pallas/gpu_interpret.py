"""JAX's interpreter of GPU kernels (Mosaic GPU), with its race detector in words of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator
from functools import cache
from typing import Any

from nkitools.pallas import jax_internals
from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import BufferKey
from nkitools.pallas.races import Access, WatchedRaces
from nkitools.rules.finding import Finding

_REMEDY = "Wait for the copy (plgpu.barrier_wait, plgpu.wait_smem_to_gmem) or meet at a barrier between the two."
_found: list[Finding] = []  # of the run that is being made


def gpu_mode() -> Any:
    """Return how JAX is to interpret a Mosaic GPU kernel; None where the installed JAX has no interpreter for them."""
    if jax_internals.moved(jax_internals.GPU):
        return None
    return jax_internals.of(jax_internals.GPU_PARAMETERS, "InterpretGPUParams")(detect_races=True)


@contextlib.contextmanager
def reporting_races(mode: Hashable) -> Iterator[list[Finding]]:
    """Collect the races of GPU kernels that are interpreted within, none without that mode of `gpu_mode`.

    Afterwards the interpreter is as it was.
    """
    if mode is None:
        yield []
        return
    module = jax_module(jax_internals.GPU_CALLBACKS)
    before = module.RaceDetectionState
    module.RaceDetectionState = _races()
    _found.clear()
    try:
        yield _found
    finally:
        module.RaceDetectionState = before
        jax_internals.of(jax_internals.GPU_INTERPRETER, "reset_gpu_interpret_mode_state")()


@cache
def _races() -> type:
    theirs = jax_internals.of(jax_internals.GPU_CALLBACKS, "RaceDetectionState")
    return type("RacesOfGpu", (_RacesOfGpu, theirs), {})


class _RacesOfGpu(WatchedRaces):
    def tell_race(self, key: BufferKey, this: Access, other: Access) -> None:
        """PL203, at the later line of the two: that access should have waited."""
        first, last = sorted((this, other), key=lambda each: each.place.line)
        message = f"a buffer of the GPU: {first.text()} and {last.text()} may happen at once"
        finding = last.place.finding("PL203", message, remedy=_REMEDY)
        if (finding.file, finding.line) not in {(each.file, each.line) for each in _found}:
            _found.append(finding)
