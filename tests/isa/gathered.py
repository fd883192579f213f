"""Kernels that make one collective of their argument, and what each rank then has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.rules.finding import Finding

Call = Callable[[Any, Any], None]  # the collective, from a source to a destination


def place(shape: Sequence[int], dtype: Any, memory: str = "hbm") -> Any:
    """A tensor of the kernel; in HBM in that which both cores reach, or in that of the one core."""
    if memory == "hbm":
        memory = "private_hbm" if nl.num_programs(0) == 1 else "shared_hbm"
    return nl.ndarray(tuple(shape), dtype=dtype, buffer=getattr(nl, memory))


def judged(run: Any) -> list[Finding]:
    """Return the findings of a run but the hints about results in private HBM, where these kernels leave them."""
    return [each for each in run.findings if each.rule != "NK621"]


def kernel_of(call: Call, shape: Sequence[int], memory: str = "hbm") -> Callable[..., Any]:
    """A kernel that copies its argument into ``memory``, calls the collective, and returns the destination.

    On two cores the first copies the argument in, and the second the destination out: the collective orders the two.
    """

    def kernel(x: Any) -> Any:
        core, alone = nl.program_id(0), nl.num_programs(0) == 1 or memory == "sbuf"
        src, dst = place(x.shape, x.dtype, memory), place(shape, x.dtype, memory)
        out = place(shape, x.dtype)
        if alone or core == 0:
            nisa.dma_copy(dst=src, src=x)
        call(src, dst)
        if nl.num_programs(0) == 1 or core == 1:
            nisa.dma_copy(dst=out, src=dst)
        return out

    return kernel


def on_ranks(kernel: Any, arrays: Sequence[Any], **keywords: Any) -> Any:
    """The run of a kernel of one argument on as many ranks as there are arrays."""
    return nkitools.simulate(kernel, *((array,) for array in arrays), ranks=len(arrays), **keywords)


def finding_of(kernel: Any, by_rank: Sequence[tuple[Any, ...]], **keywords: Any) -> Any:
    """The one finding of a run on ranks, the same at both levels of the rules."""
    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, *by_rank, ranks=len(by_rank), **keywords)
    finding = raised.value.finding
    run = nkitools.simulate(kernel, *by_rank, ranks=len(by_rank), rules="report", **keywords)
    first = run.findings[0]
    assert (first.rule, first.message, first.rank) == (finding.rule, finding.message, finding.rank)
    return finding


def numbers(count: int, *shape: int, dtype: Any = np.float32) -> list[Any]:
    """Reproducible arrays, one a rank, of small integers, whose sums are exact in every dtype."""
    source = np.random.default_rng(count + sum(shape))
    return [source.integers(-4, 5, shape).astype(dtype) for _ in range(count)]
