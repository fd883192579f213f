"""Outputs against a reference: what differs, and who wrote it."""

from __future__ import annotations

from typing import Any

import numpy as np

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.columns import Columns
from nkitools.record.expected_outputs import Reference
from nkitools.report.page.comparison import compared, wrong_tiles

X = np.arange(384 * 4, dtype=np.float32).reshape(384, 4)


def copied(x: Any) -> Any:
    """Row tiles, each written twice: the second half of each tile again."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for start in range(0, x.shape[0], 128):
        nisa.dma_copy(dst=out[start : start + 128, :], src=x[start : start + 128, :])
        nisa.dma_copy(dst=out[start + 64 : start + 128, :], src=x[start + 64 : start + 128, :])
    return out


def test_what_differs_is_counted_and_ranked() -> None:
    """A difference beyond the tolerance is wrong; the worst is the largest, a NaN before all others."""
    ours = np.array([[1.0, 2.0, 3.0], [4.0, np.nan, 6.0]], np.float32)
    theirs = np.array([[1.0, 2.1, 3.0], [5.0, np.nan, 6.00001]], np.float32)
    (found,) = compared(ours, Reference(theirs, rtol=1e-3))
    np.testing.assert_array_equal(found.wrong, [[False, True, False], [True, False, False]])
    assert (found.count, found.worst) == (2, (1, 0))
    (found,) = compared(np.array([1.0, np.nan]), Reference(np.array([9.0, 2.0])))
    assert found.worst == (1,)


def test_what_cannot_be_compared_says_why() -> None:
    """Another number of arrays, another shape, no array."""
    (found,) = compared(X, Reference([X, X]))
    assert found.message == "the kernel returns 1 arrays, the reference has 2"
    (found,) = compared(X, Reference(X[:2]))
    assert found.message == "the output and the reference cannot be compared: shape [384, 4], expected [2, 4]"
    (found,) = compared(None, Reference(X))
    assert found.message == "only arrays can be compared"


def test_the_histogram_counts_every_element() -> None:
    """In decades of the difference; equal ones and those without a difference apart."""
    ours, theirs = np.zeros(10), np.array([0, 0, 0, 1e-6, 1e-3, 1e-3, 1.0, 1.0, 10.0, np.nan])
    (found,) = compared(ours, Reference(theirs))
    told = found.histogram()
    assert (told["equal"], told["unknown"], sum(told["bins"])) == (3, 1, 6)
    assert (told["from"], told["to"]) == (-6, 1)


def test_the_last_writer_of_a_wrong_element_is_named() -> None:
    """Of two writes to one place the later one has written it; in order, with the place of the first wrong element."""
    run = nkitools.simulate(copied, X)
    assert run.record is not None
    (output,) = run.record.outputs
    wrong = np.zeros(X.shape, bool)
    wrong[130, 1] = wrong[131, :] = wrong[250, 0] = wrong[383, 3] = True
    tiles = wrong_tiles(run.record, Columns(run.record), output, wrong)
    assert tiles == [[2, 5, 521], [3, 1, 1000], [5, 1, 1535]]


def test_a_view_of_an_output_is_followed() -> None:
    """The result may be a part of what was written."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 8), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out[:, 0:4], src=x)
        nisa.dma_copy(dst=out[:, 4:8], src=x)
        return out[:, 2:6]

    run = nkitools.simulate(kernel, X[:128])
    assert run.record is not None
    (output,) = run.record.outputs
    wrong = np.zeros((128, 4), bool)
    wrong[5, 2] = True
    assert wrong_tiles(run.record, Columns(run.record), output, wrong) == [[1, 1, 22]]
