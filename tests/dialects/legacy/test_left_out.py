"""What a mask left out and something uses is told with the mask's line (NK405), what nobody ever wrote is NK401."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, run

X = random(128, 64)
FEW = random(100, 64)


def _line(function: Any, mark: str) -> int:
    """The line of a function that ends in a mark."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if line.rstrip().endswith(f"# {mark}"))


def computed(x: Any) -> Any:
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f], mask=i_p < 100)  # mask
    shifted = nl.exp(tile) + 1.0
    nl.store(out, nl.copy(shifted))  # use
    return out


def reduced(x: Any) -> Any:
    """The reduction leaves out rows that hold nothing; the sums of those are as undefined."""
    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f], mask=i_p < 100)  # mask
    total = nl.sum(tile, axis=1, keepdims=True)
    nl.store(out, nl.exp(total))  # use
    return out


def softened(x: Any) -> Any:
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f], mask=i_p < 100)  # mask
    nl.store(out, nl.softmax(tile, axis=1))  # use
    return out


def assigned(x: Any) -> Any:
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.ndarray((128, 64), dtype=x.dtype)
    tile[i_p, i_f] = nl.load(x[i_p, i_f], mask=i_p < 100)  # mask
    nl.store(out, tile)  # use
    return out


def in_place(x: Any) -> Any:
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype)
    i_p = nl.arange(128)[:, None]
    chosen = nl.zeros((128, 64), dtype=nl.uint8)
    nisa.select_reduce(dst=tile, predicate=chosen, on_true=chosen, on_false=1.0, mask=i_p < 100)  # mask
    nl.store(out, tile)  # use
    return out


def contracted(x: Any) -> Any:
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f], mask=i_p < 100)  # mask
    nl.store(out, nl.matmul(tile, tile, transpose_x=True))  # use
    return out


def masked_twice(x: Any) -> Any:
    """The first mask left the lane out; the second only did not bring it back."""
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f], mask=i_p < 100)  # mask
    doubled = nl.multiply(tile, 2.0, mask=i_p < 110)
    nl.store(out, doubled)  # use
    return out


USES = [computed, reduced, softened, assigned, in_place, contracted, masked_twice]


@pytest.mark.parametrize("kernel", USES, ids=lambda each: each.__name__)
def test_the_mask_is_named_by_its_line(kernel: Any) -> None:
    """The finding stands where the lane is used and names where it was left out, whatever lies between."""
    found = refusal(kernel, FEW)
    assert (found.rule, found.line) == ("NK405", _line(kernel, "use"))
    assert f"the mask at line {_line(kernel, 'mask')} left out" in found.message
    assert [each.rule for each in run(kernel, FEW, rules="report").findings] == ["NK405"]


def never_touched(x: Any) -> Any:
    tile = nl.ndarray((128, 64), dtype=x.dtype)
    tile[0:100, :] = nl.load(x[0:100, :])
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


def masked_elsewhere(x: Any) -> Any:
    """The mask was about the left half; of the right one nobody has written anything."""
    tile = nl.ndarray((128, 64), dtype=x.dtype)
    i_p, i_f = nl.mgrid[0:128, 0:32]
    tile[i_p, i_f] = nl.load(x[i_p, i_f], mask=i_p < 100)
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


def of_masked_values(x: Any) -> Any:
    """A tile that is assigned the defined part of a masked one has rows of its own that nobody has written."""
    i_p, i_f = nl.mgrid[0:128, 0:64]
    loaded = nl.load(x[i_p, i_f], mask=i_p < 100)
    tile = nl.ndarray((128, 64), dtype=x.dtype)
    tile[0:64, :] = nl.exp(loaded[0:64, :])
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


@pytest.mark.parametrize("kernel", [never_touched, masked_elsewhere, of_masked_values], ids=lambda each: each.__name__)
def test_what_was_never_touched_is_no_matter_of_masks(kernel: Any) -> None:
    """NK401, although some elements of the tile were under a mask."""
    assert refusal(kernel, X).rule == "NK401"


def test_lanes_that_got_a_value_later_are_defined() -> None:
    """The rest of a masked tile may be filled, before or after."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0:64]
        tile = nl.ndarray((128, 64), dtype=x.dtype)
        tile[i_p, i_f] = nl.load(x[i_p, i_f], mask=i_p < 96)
        tile[96:128, :] = 0.0
        nl.store(out, tile)
        return out

    result = outputs(kernel, X, rules="report")
    np.testing.assert_array_equal(result, np.where(np.arange(128)[:, None] < 96, X, 0))


def test_a_mask_of_many_tiles_of_a_loop() -> None:
    """Where more views were under masks than are kept, the masks are still what is named."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), dtype=x.dtype)
        for j in nl.affine_range(64):
            i_p, i_f = nl.mgrid[0:128, 0:1]
            tile[i_p, j + i_f] = nl.load(x[i_p, j + i_f], mask=i_p < 100)
        nl.store(out, tile)
        return out

    assert refusal(kernel, FEW).rule == "NK405"
