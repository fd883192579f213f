"""Products that BLAS adds to memory have the bits of NumPy's product and sum, or are not used."""

from __future__ import annotations

import numpy as np
import pytest

from nkitools.launch.blas import one_thread
from nkitools.replay.added_products import add_product, adds_exactly


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("sizes", [(128, 128, 512), (128, 64, 128), (7, 5, 9), (2, 128, 2)])
def test_an_added_product_has_numpys_bits(sizes: tuple[int, int, int], is_turned: bool) -> None:
    """Over other numbers than those of the judgement, in parts of larger arrays; operands may be transposes."""
    contraction, rows, columns = sizes
    random = np.random.default_rng(9)
    total = random.standard_normal((rows, columns + 3), np.float32)[:, 1 : columns + 1]
    left = random.standard_normal((contraction, rows + 8), np.float32)[:, :rows]
    right = random.standard_normal((columns, contraction), np.float32).T
    if is_turned:
        left, right = np.asfortranarray(left), np.ascontiguousarray(right)
    with one_thread():
        if not adds_exactly(*sizes, total.strides, left.strides, right.strides):
            pytest.skip("this BLAS adds a product with other bits, or is not called")
        expected = total + np.matmul(left.T, right)
        add_product(total, left, right)
    np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize(
    ("destination", "stationary"),
    [
        ((4, 64), (32, 4)),
        ((72, 8), (32, 4)),
        ((64, 4), (32, 8)),
        ((64, 4), (0, 4)),
        ((66, 4), (32, 4)),
        ((60, 4), (32, 4)),
    ],
)
def test_a_layout_that_blas_does_not_take_is_refused(destination: tuple[int, int], stationary: tuple[int, int]) -> None:
    """Turned sums, elements far apart, rows that overlap or lie at no multiple of four bytes."""
    assert not adds_exactly(4, 8, 16, destination, stationary, (64, 4))
