import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def halved(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.5)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_halved(run_kernel):
    x = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
    outputs = run_kernel(halved, x, reference=lambda x: x / 2)
    assert np.abs(outputs - x / 2).max() < 1e-6
