"""Kernels that choose, beside references: right ones whose choices rounding flips pass, wrong ones do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.pytest_plugin.reference_check import TiedChoicesWarning
from nkitools.sweeps.checked_call import Case, CheckedCall

ROWS, COLUMNS = 64, 512
ROUNDED = np.float32(2.0**-24)  # the last digit of numbers below 1, which those above 2 do not have


def numbers(gap: float) -> Any:
    """Return rows of small numbers and eight large ones, then one that in one row is below the eighth by ``gap``."""
    random = np.random.default_rng(3)
    x = random.uniform(0.0, 0.25, (ROWS, COLUMNS)).astype(np.float32)
    for row in range(ROWS):
        x[row, 10:18] = np.linspace(0.875, 0.5, 8, dtype=np.float32)
        x[row, 30] = 0.4
    x[0, 3] = np.float32(0.5) - np.float32(gap)
    x[2, 5] = np.float32(0.875) - np.float32(gap)  # beside the largest one
    return x


def stored(tile: Any) -> Any:
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def on_chip(shape: Any, dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)


def shifted(x: Any, by: float = 2.0) -> Any:
    """Return a tile of x + ``by``: float32 rounds the last digits away."""
    tile = on_chip(x.shape)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=by)
    return tile


def compared(tile: Any, limit: Any, op: Any) -> Any:
    result = on_chip(tile.shape)
    nisa.tensor_scalar(dst=result, data=tile, op0=op, operand0=limit)
    return result


def eighth(tile: Any, place: int = 7) -> Any:
    most, limit = on_chip((tile.shape[0], 8)), on_chip((tile.shape[0], 1))
    nisa.max8(dst=most, src=tile)
    nisa.tensor_copy(dst=limit, src=most[:, place : place + 1])
    return limit


def above_eighth(x: Any, op: Any = nl.greater_equal, place: int = 7) -> Any:
    """Mask of the eight largest of a row, by comparison."""
    tile = shifted(x)
    return stored(compared(tile, eighth(tile, place), op))


def largest(x: Any, op: Any = nl.equal) -> Any:
    """1 at the largest of a row."""
    tile, peak = shifted(x), on_chip((x.shape[0], 1))
    nisa.tensor_reduce(dst=peak, op=nl.maximum, data=tile, axis=1)
    return stored(compared(tile, peak, op))


def places(x: Any) -> Any:
    """Places of the eight largest of a row."""
    tile, most = shifted(x), on_chip((x.shape[0], 8))
    found = on_chip((x.shape[0], 8), nl.uint32)
    nisa.max8(dst=most, src=tile)
    nisa.nc_find_index8(dst=found, data=tile, vals=most)
    return stored(found)


def replaced(x: Any, value: float = -1.0) -> Any:
    """1 where one of the eight largest was replaced."""
    tile, most, other = shifted(x), on_chip((x.shape[0], 8)), on_chip(x.shape)
    nisa.max8(dst=most, src=tile)
    nisa.nc_match_replace8(dst=other, data=tile, vals=most, imm=value)
    return stored(compared(other, 0.0, nl.less))


def selected(x: Any, op: Any = nl.greater_equal) -> Any:
    """Numbers that are at least a limit, else 0."""
    tile, data, result = shifted(x), on_chip(x.shape), on_chip(x.shape)
    nisa.dma_copy(dst=data, src=x)
    mask = compared(tile, 2.5, op)
    nisa.tensor_tensor(dst=result, data1=data, data2=mask, op=nl.multiply)
    return stored(result)


def mask_of_eight(x: Any) -> Any:
    return (x >= np.sort(x, axis=1)[:, -8:-7]).astype(np.float32)


def mask_of_largest(x: Any) -> Any:
    return (x == x.max(axis=1, keepdims=True)).astype(np.float32)


def places_of_eight(x: Any) -> Any:
    return np.argsort(-x, axis=1, kind="stable")[:, :8].astype(np.uint32)


def selection(x: Any) -> Any:
    return np.where(x + 2.0 >= 2.5, x, 0).astype(x.dtype)


def outcome(kernel: Any, reference: Any, x: Any, ranks: int = 0) -> str:
    """Return the verdict of a sweep."""
    if not ranks:
        return str(CheckedCall(kernel, "nki", lambda: (x,), reference)(Case({}, "trn2"))["outcome"])
    call = CheckedCall(
        kernel, "nki", lambda ranks: [(x,) for _ in range(ranks)], lambda *given: [reference(one) for (one,) in given]
    )
    return str(call(Case({"ranks": ranks}, "trn2"))["outcome"])


def near() -> Any:
    return numbers(float(ROUNDED))


RIGHT: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "mask of the eight largest": (above_eighth, mask_of_eight),
    "largest by comparison": (largest, mask_of_largest),
    "places of max8": (places, places_of_eight),
    "match_replace": (replaced, mask_of_eight),
}
WRONG: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], float]] = {
    "the seventh for the eighth": (lambda x: above_eighth(x, place=6), mask_of_eight, float(ROUNDED)),
    "> for >=": (lambda x: above_eighth(x, op=nl.greater), mask_of_eight, float(ROUNDED)),
    "places in another order": (places, lambda x: places_of_eight(x)[:, ::-1], 1e-5),
    "the smallest": (lambda x: largest(x, op=nl.not_equal), mask_of_largest, float(ROUNDED)),
    "nothing replaced": (lambda x: replaced(x, value=1.0), mask_of_eight, float(ROUNDED)),
    "an almost-tie of 1e-4 in a coarse sum": (lambda x: stored(_coarse(x)), mask_of_largest, 1e-4),
    "> for >= at a limit that elements equal": (lambda x: selected(x, op=nl.greater), selection, float(ROUNDED)),
}


def _coarse(x: Any) -> Any:
    """Mask of the largest of x + 4096, which loses what the reference tells apart."""
    tile, peak = shifted(x, 4096.0), on_chip((x.shape[0], 1))
    nisa.tensor_reduce(dst=peak, op=nl.maximum, data=tile, axis=1)
    return compared(tile, peak, nl.equal)


@pytest.mark.parametrize("ranks", [0, 2])
@pytest.mark.parametrize("case", RIGHT)
def test_a_right_kernel_passes_where_rounding_flips_its_choice(case: str, ranks: int) -> None:
    """Alone, and on two ranks, whose kernels have no run in float64."""
    kernel, reference = RIGHT[case]
    x = near()
    assert not np.array_equal(nkitools.simulate(kernel, x).outputs, reference(x))
    assert outcome(kernel, reference, x, ranks) == "pass"
    assert outcome(kernel, lambda x: reference(x) * 0 + 3, x, ranks) == "wrong"


@pytest.mark.parametrize("ranks", [0, 2])
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_kernel_is_wrong_beside_almost_ties(case: str, ranks: int) -> None:
    """Where the values are equal, or farther apart than float32 rounds; of some alone nothing is decided."""
    kernel, reference, gap = WRONG[case]
    assert outcome(kernel, reference, numbers(gap), ranks) in (["wrong"] if ranks else ["wrong", "undecided"])


def test_more_than_a_hundredth_fails_on_ranks_too() -> None:
    """Ties everywhere are no rounding of some choices."""
    x = np.float32(0.5) + np.tile(np.float32([0, float(ROUNDED)]), (ROWS, COLUMNS // 2))
    assert outcome(largest, mask_of_largest, x, 2) == "wrong"


def test_run_kernel_counts_what_it_leaves_out_of_ranks(run_kernel: Any) -> None:
    """As a warning for each rank's output."""
    x = near()
    with pytest.warns(TiedChoicesWarning, match="elements are left out"):
        run_kernel(largest, (x,), (x,), ranks=2, reference=lambda *given: [mask_of_largest(one) for (one,) in given])


@pytest.mark.frameworks
def test_references_of_torch_show_their_ties(run_kernel: Any) -> None:
    """As NumPy's do."""
    torch = pytest.importorskip("torch")
    with pytest.warns(TiedChoicesWarning, match="elements are left out"):
        run_kernel(
            largest,
            torch.from_numpy(near()),
            reference=lambda x: (x == x.max(dim=1, keepdim=True).values).to(torch.float32),
        )
