"""What AWS's own simulator was recorded to say of small kernels, beside what the chip and this simulator say.

AWS's simulator is ``nki.simulate`` of nki 0.6.0 for trn2; its verdicts are the public claims, runs and logs of teams of
October 2026 (github.com/yahavb/trainium-agent-labs), the kernels are written here. The chip's verdict is that of a trn2
or of its compiler, where one was recorded. Where the two differ the chip decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import nki.isa as nisa
import nki.language as nl
import numpy as np

RIGHT, WRONG, REFUSED = "right", "wrong numbers", "refused"
Array = np.ndarray
Kernel = Callable[..., Any]
DRAWN = np.random.default_rng(52)


class Claim(NamedTuple):
    """One kernel with the verdicts.

    ``ours`` is that of this simulator, and empty where it is the deciding one; ``by`` the rule of our refusal.
    """

    name: str
    kernel: Kernel
    arguments: tuple[Array, ...]
    reference: Callable[..., Array] | None
    aws: str
    chip: str = ""
    ours: str = ""
    by: str = ""

    @property
    def decided(self) -> str:
        """The verdict of the chip, of AWS's simulator where there is none."""
        return self.chip or self.aws


CLAIMS: list[Claim] = []


def noise(*shape: int) -> Array:
    return DRAWN.standard_normal(shape).astype(np.float32)


def claim(
    name: str,
    aws: str,
    *arguments: Array,
    to: Callable[..., Array] | None = None,
    chip: str = "",
    ours: str = "",
    by: str = "",
) -> Callable[[Kernel], Kernel]:
    """Note a kernel and what was said of it; ``to`` computes the right result with NumPy."""

    def noted(kernel: Kernel) -> Kernel:
        CLAIMS.append(Claim(name, kernel, arguments, to, aws, chip, ours, by))
        return kernel

    return noted


def hbm(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return nl.ndarray(shape, dtype=dtype, buffer=nl.shared_hbm)


def sbuf(shape: tuple[int, ...], dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)


def psum(shape: tuple[int, ...]) -> Any:
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.psum)


def loaded(x: Any) -> Any:
    tile = sbuf(x.shape, x.dtype)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def stored(tile: Any, shape: tuple[int, ...]) -> Any:
    out = hbm(shape)
    nisa.dma_copy(dst=out, src=tile)
    return out


def rounds(step: Callable[[Any, Any], Any], width: int = 0) -> Kernel:
    """Return a kernel that loads a tile, lets ``step`` fill another one (of ``width`` columns) and stores that."""

    def kernel(x: Any) -> Any:
        shape = (x.shape[0], width) if width else x.shape
        result = sbuf(shape)
        step(result, loaded(x))
        return stored(result, shape)

    return kernel


def made(step: Callable[[Any], Any], shape: Callable[[Any], tuple[int, ...]]) -> Kernel:
    """Return a kernel that stores the tile which ``step`` makes of a loaded one."""

    def kernel(x: Any) -> Any:
        return stored(step(loaded(x)), shape(x))

    return kernel


def same(x: Array) -> Array:
    return x


def total(x: Array) -> Array:
    return x.sum(1, keepdims=True)


def largest(x: Array) -> Array:
    return x.max(1, keepdims=True)


X, Y, POSITIVE, SMALL = noise(128, 64), noise(128, 64), abs(noise(128, 64)) + 0.5, np.arange(32.0, dtype=np.float32)
SMALL = SMALL.reshape(4, 8)
