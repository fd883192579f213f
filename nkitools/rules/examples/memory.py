"""The examples of the memory rules."""

NK201_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=result, op=nl.exp, data=x)  # NK201
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK201_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=result, op=nl.exp, data=tile)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK205_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.zeros((128, 128), dtype=x.dtype, buffer=nl.shared_hbm)  # NK205
    nl.store(out[0:128, 0:64], nl.load(x))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK205_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out[0:128, 0:64], nl.load(x))
    nl.store(out[0:128, 64:128], nl.zeros((128, 64), dtype=x.dtype))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK206_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=tile, data2=tile, op=nl.add, engine=nisa.engine.scalar)  # NK206
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK206_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=tile, data2=tile, op=nl.add, engine=nisa.engine.gpsimd)
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK207_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, address=(0, 1022))  # NK207
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK207_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, address=(0, 1024))
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK208_BAD = """\
@nki.jit
def half(x):
    rows = 64 if nl.program_id(0) == 0 else 32
    out = nl.ndarray((rows, 64), dtype=x.dtype, buffer=nl.shared_hbm)  # NK208
    nisa.dma_copy(dst=out, src=nl.load(x[0:rows, :]))
    return out


CHIP = "trn2"
kernel = half[2]
inputs = (np.ones((64, 64), np.float32),)
"""

NK208_GOOD = """\
@nki.jit
def half(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.ds(nl.program_id(0) * 32, 32)
    nisa.dma_copy(dst=out[rows, :], src=nl.load(x[rows, :]))
    return out


CHIP = "trn2"
kernel = half[2]
inputs = (np.ones((64, 64), np.float32),)
"""
