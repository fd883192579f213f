"""A tensor at a breakpoint: every kind of view says what it is, and no rule speaks."""

from __future__ import annotations

from typing import Any

import numpy as np

import nkitools
from nkitools.dialects.legacy import language as lnl
from nkitools.dialects.legacy.kernels.kernel import jit as legacy_jit
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def shown_in(body: Any, *arrays: Any, **kwargs: Any) -> list[str]:
    """What ``body`` yields, as text, in a run without findings and prints."""
    found: list[str] = []

    def kernel(x: Any) -> Any:
        found.extend(map(repr, body(x)))
        return x

    run = nkitools.simulate(kernel, X, rules="error", **kwargs)
    assert (run.findings, run.prints, len(run.instructions) < 4) == ([], [], True)
    return found


def test_a_tensor_has_the_name_of_its_variable() -> None:
    """Or the one that its author has given it."""

    def body(x: Any) -> Any:
        tile = nl.ndarray((8, 4), dtype=nl.bfloat16, buffer=nl.sbuf)
        other = nl.ndarray((8, 4), dtype=nl.int32, buffer=nl.psum, name="mine")
        nisa.dma_copy(dst=tile[0:2], src=x[0:2])
        yield from (tile, other, tile[1:3, 2:4], x[2:4])

    tile, other, part, hbm = shown_in(body)
    assert tile.splitlines()[0] == "<tensor `tile` (SBUF, bfloat16 [8, 4]) at (0, 0), rows 0..1 of 8 written>"
    assert other.splitlines()[0] == "<tensor `mine` (PSUM, int32 [8, 4]) at (0, 0), nothing written>"
    assert part == "<tensor `tile` (SBUF, bfloat16 [2, 2]) at (1, 4), rows 0..0 of 2 written>\n[[ 6  7]\n [-- --]]"
    assert hbm == "<tensor `x` (HBM, float32 [2, 4]) at (0, 32), all written>\n[[ 8.  9. 10. 11.]\n [12. 13. 14. 15.]]"


def test_views_with_run_time_addresses_say_what_decides_them() -> None:
    """An index that was never written, or a pattern that leaves the storage, is no mistake of who looks at it."""

    def body(x: Any) -> Any:
        index = nl.ndarray((8, 1), dtype=nl.uint32, buffer=nl.sbuf)
        register = nisa.register_alloc(3)
        yield x.ap([[4, 8], [1, 4]], vector_offset=index, indirect_dim=0)
        yield x[register, 0:4]
        yield x.ap([[4, 9], [1, 4]])
        tile = nl.ndarray((8, 4), dtype=nl.float32, buffer=nl.sbuf)
        yield tile.select(1, index[0:1])

    rows, moved, outside, selected = shown_in(body)
    assert rows == (
        "<tensor `x` (HBM, float32 [8, 4]): rows of tensor `x` (HBM, float32 [8, 4]) chosen by "
        "tensor `index` (SBUF, uint32 [8, 1])>"
    )
    assert moved.startswith("<tensor `x` (HBM, float32 [4]), moved by VirtualRegister(3")
    assert outside == "<tensor `x` (HBM, float32 [9, 4]), which reaches outside of its storage>"
    assert selected.endswith("moved by tensor `index` (SBUF, uint32 [1, 1])>")


def test_in_full_precision_it_shows_what_is_kept() -> None:
    """In float32, as prints do."""

    def body(x: Any) -> Any:
        tile = nl.ndarray((8, 1), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.memset(tile, 1.001)
        yield tile[0:1]

    with nkitools.facts.options.override(precision="full"):
        assert shown_in(body)[0].endswith("[[1.001]]")
    assert shown_in(body)[0].endswith("[[1.]]")


def test_tensors_of_the_legacy_dialect() -> None:
    """A tile, one that is partly outside, and block dimensions."""
    found: list[str] = []

    @legacy_jit
    def kernel(x: Any) -> Any:
        out = lnl.ndarray(x.shape, dtype=x.dtype, buffer=lnl.shared_hbm)
        i_p, i_f = lnl.arange(8)[:, None], lnl.arange(4)[None, :]
        tile = lnl.load(x[i_p, i_f], mask=i_p < 6)
        blocks = lnl.ndarray((2, lnl.par_dim(8), 4), dtype=lnl.float32, buffer=lnl.sbuf)
        found.extend(map(repr, (tile, x[4 + i_p, i_f], blocks)))
        lnl.store(out, lnl.load(x))
        return out

    run = nkitools.simulate(kernel, X, rules="report")
    assert {finding.rule for finding in run.findings} <= {"NK612", "NK513"}
    tile, beyond, blocks = found
    assert tile.splitlines()[0] == "<tensor `tile` (SBUF, float32 [8, 4]) at (0, 0), rows 0..5 of 8 written>"
    assert beyond == "<tile [8, 4] of tensor `x` (HBM, float32 [8, 4]), partly outside of it or chosen when it is used>"
    assert blocks.startswith(
        "<2 blocks [2, 8, 4], the first is tensor `blocks` (SBUF, float32 [8, 4]), nothing written>"
    )
