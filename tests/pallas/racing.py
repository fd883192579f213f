"""Kernels with copies in flight, each in a right form and in one with a race, and what a check says of both."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import nkitools.pallas

TILES, ROWS = 6, 8
X = np.arange(TILES * ROWS * 128, dtype=np.float32).reshape(TILES, ROWS, 128) / 64
TILE = (ROWS, 128)
VMEM, ANY = pltpu.VMEM, pl.ANY
copy = pltpu.make_async_copy

Verdict = list[tuple[str, int]]  # rule and line


def buffers(*count: int) -> Any:
    """Return scratch memory for tiles."""
    return pltpu.VMEM((*count, *TILE), jnp.float32)


def semaphores(*count: int) -> Any:
    """Return semaphores of copies."""
    return pltpu.SemaphoreType.DMA(count) if count else pltpu.SemaphoreType.DMA


def both(one: Any) -> None:
    """Start a copy and wait for it."""
    one.start()
    one.wait()


class Racing(NamedTuple):
    """A kernel whose parameter ``ok`` chooses its right form, and the lines of the race of the other one."""

    name: str
    kernel: Callable[..., None]
    scratch: tuple[Any, ...]
    lines: tuple[int, ...]
    output: Any = VMEM
    tiles: int = 0  # of the output; 0: one, without a dimension of its own

    def verdict(self, ok: bool) -> Verdict:
        """Return the findings of a check, in order."""
        return verdict_of(partial(self.called, ok))

    def called(self, ok: bool, x: Any) -> Any:
        """Return the output of the kernel."""
        return pl.pallas_call(
            partial(self.kernel, ok=ok),
            in_specs=[pl.BlockSpec(memory_space=ANY)],
            out_specs=pl.BlockSpec(memory_space=self.output),
            scratch_shapes=list(self.scratch),
            out_shape=jax.ShapeDtypeStruct((self.tiles, *TILE) if self.tiles else TILE, x.dtype),
        )(x)

    def is_named(self, verdict: Verdict) -> bool:
        """Return whether the race is in a verdict, at its line."""
        return any(rule == "PL203" and line in self.lines for rule, line in verdict)


def verdict_of(fn: Callable[[Any], Any]) -> Verdict:
    """Return the findings of a check in TPU interpretation."""
    run = nkitools.pallas.check(fn, X, modes="tpu_interpret")
    return sorted((each.rule, each.line) for each in run.findings)


def marked_lines(kernel: Callable[..., Any], mark: str = "# RACE") -> tuple[int, ...]:
    """Return the lines of a kernel that end in a mark."""
    source, first = inspect.getsourcelines(kernel)
    return tuple(first + at for at, line in enumerate(source) if line.rstrip().endswith(mark))


def racing(table: list[Racing], *scratch: Any, output: Any = VMEM) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator that adds a kernel to a table."""

    def add(kernel: Callable[..., None]) -> Callable[..., None]:
        lines = marked_lines(kernel)
        assert lines, kernel
        table.append(Racing(kernel.__name__, kernel, scratch, lines, output))
        return kernel

    return add
