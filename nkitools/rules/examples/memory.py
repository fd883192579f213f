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

NK202_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 16384), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((128, 16384), dtype=nl.float32)
    blocks = []
    for i in range(5):
        block = nl.load(x[i * 128 : (i + 1) * 128, :])  # NK202
        blocks.append(block)
    for block in blocks:
        nisa.tensor_tensor(dst=total, data1=total, data2=block, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((640, 16384), np.float32),)
"""

NK202_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 16384), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((128, 16384), dtype=nl.float32)
    for i in range(5):
        block = nl.load(x[i * 128 : (i + 1) * 128, :])
        nisa.tensor_tensor(dst=total, data1=total, data2=block, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((640, 16384), np.float32),)
"""

NK203_BAD = """\
@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 9 * 512), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary, moving = nl.load(a), nl.load(b)
    sums = []
    for n in range(9):
        columns = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=columns, stationary=stationary, moving=moving[:, n * 512 : (n + 1) * 512])  # NK203
        sums.append(columns)
    for n, columns in enumerate(sums):
        result = nl.copy(columns)
        nisa.dma_copy(dst=out[:, n * 512 : (n + 1) * 512], src=result)
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 9 * 512), np.float32))
"""

NK203_GOOD = """\
@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 8 * 512), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary, moving = nl.load(a), nl.load(b)
    sums = []
    for n in range(8):
        columns = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=columns, stationary=stationary, moving=moving[:, n * 512 : (n + 1) * 512])
        sums.append(columns)
    for n, columns in enumerate(sums):
        result = nl.copy(columns)
        nisa.dma_copy(dst=out[:, n * 512 : (n + 1) * 512], src=result)
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 8 * 512), np.float32))
"""

NK204_BAD = """\
@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    first = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, address=(0, 0))
    second = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, address=(0, 128))
    nisa.dma_copy(dst=first, src=x)
    nisa.dma_copy(dst=second, src=y)
    nisa.tensor_tensor(dst=second, data1=first, data2=second, op=nl.add)  # NK204
    nisa.dma_copy(dst=out, src=second)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 64), np.float32))
"""

NK204_GOOD = """\
@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    first = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, address=(0, 0))
    second = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, address=(0, 256))
    nisa.dma_copy(dst=first, src=x)
    nisa.dma_copy(dst=second, src=y)
    nisa.tensor_tensor(dst=second, data1=first, data2=second, op=nl.add)
    nisa.dma_copy(dst=out, src=second)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 64), np.float32))
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

NK209_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    return nl.multiply(nl.load(x), 2.0)  # NK209


inputs = (np.ones((128, 64), np.float32),)
"""

NK209_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), 2.0))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""
