"""Maximum and minimum of a tile and a number: to the bit what NumPy makes of the tile and the number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nkitools.engines.arithmetic import steps_in_place, steps_of
from nkitools.engines.operators import OPERATORS

AWKWARD = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, -np.nan, 1e-45, 3e38], np.float32)
PAYLOADS = np.array([0x7FC00001, 0xFFC12345, 0x7F800001], np.uint32).view(np.float32)
NUMBERS = np.concatenate([AWKWARD, PAYLOADS])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("columns", [3, 700])
@pytest.mark.parametrize(("name", "function"), [("maximum", np.maximum), ("minimum", np.minimum)])
def test_a_number_beside_a_tile(name: str, function: Any, columns: int, reverse: bool) -> None:
    """Zeros of either sign and NaNs of any payload among them, in narrow and in wide tiles."""
    tile = np.resize(NUMBERS, (5, columns))
    compute = steps_in_place(steps_of(OPERATORS[name], None, reverse, False), 2)
    for number in NUMBERS:
        found = np.empty_like(tile)
        compute(found, tile, number)
        expected = function(number, tile) if reverse else function(tile, number)
        np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))
