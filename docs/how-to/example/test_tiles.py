import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def scaled(x):
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    source = nl.tiles(x, tile_shape=(128, 256))
    target = nl.tiles(result, tile_shape=(128, 256))
    held = nl.empty_like(source, buffer=nl.sbuf)
    for i in range(source.shape[0]):
        nisa.dma_copy(dst=held[i].data, src=source[i].data)
        nisa.tensor_scalar(dst=held[i].data, data=held[i].data, op0=nl.multiply, operand0=2.0)
        for j in range(source.shape[1]):
            nisa.dma_copy(dst=target[i, j].data, src=held[i, j].data)
    return result


def test_scaled(run_kernel):
    x = np.random.default_rng(0).normal(size=(300, 700)).astype(np.float32)
    np.testing.assert_array_equal(run_kernel(scaled, x), 2 * x)
