import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
from hypothesis import given, settings

from nkitools import strategies as kernels


@nki.jit
def transpose(x):
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for m in range((rows + 127) // 128):
        for n in range((columns + 127) // 128):
            height, width = min(128, rows - m * 128), min(128, columns - n * 128)
            tile = nl.load(x[nl.ds(m * 128, height), nl.ds(n * 128, width)])
            turned = nl.ndarray((width, height), dtype=x.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=tile)
            nl.store(out[nl.ds(n * 128, width), nl.ds(m * 128, height)], nl.copy(turned))
    return out


@settings(max_examples=20, deadline=None)
@given(x=kernels.arrays(kernels.matrix_shapes(128, 128), "float32"))
def test_transpose_of_any_matrix(run_kernel, x):
    np.testing.assert_array_equal(run_kernel(transpose, x), x.T)
