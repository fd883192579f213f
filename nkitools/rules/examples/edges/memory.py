"""Examples near the edge of the memory rules."""

NK201_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
    nisa.dma_copy(dst=out, src=product)  # NK201
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK201_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
    nisa.dma_copy(dst=out, src=nl.copy(product))
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK202_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 2), dtype=x.dtype, buffer=nl.shared_hbm)
    # 224 KiB of each partition, without the 16 of the compiler: 53248 elements of float32.
    column = nl.load(x)
    wide = nl.zeros((128, 53248), dtype=x.dtype)  # NK202
    nl.store(out[:, 0:1], column)
    nl.store(out[:, 1:2], wide[:, 53247:])
    return out


CHIP = "trn2"
inputs = (np.ones((128, 1), np.float32),)
"""

NK202_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 2), dtype=x.dtype, buffer=nl.shared_hbm)
    # 224 KiB of each partition, without the 16 of the compiler: 53248 elements of float32.
    column = nl.load(x)
    wide = nl.zeros((128, 53247), dtype=x.dtype)
    nl.store(out[:, 0:1], column)
    nl.store(out[:, 1:2], wide[:, 53246:])
    return out


CHIP = "trn2"
inputs = (np.ones((128, 1), np.float32),)
"""

NK203_BAD = """\
@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 2), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary, moving = nl.load(a), nl.load(b)
    banks = []
    for _ in range(8):
        sums = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=sums, stationary=stationary, moving=moving)
        banks.append(sums)
    column = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=column, stationary=stationary, moving=moving[:, 0:1])  # NK203
    nl.store(out[:, 0:1], nl.copy(column))
    for sums in banks:
        nl.store(out[:, 1:2], nl.copy(sums[:, 0:1]))
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK203_GOOD = """\
@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 2), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary, moving = nl.load(a), nl.load(b)
    banks = []
    for _ in range(7):
        sums = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=sums, stationary=stationary, moving=moving)
        banks.append(sums)
    column = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=column, stationary=stationary, moving=moving[:, 0:1])
    nl.store(out[:, 0:1], nl.copy(column))
    for sums in banks:
        nl.store(out[:, 1:2], nl.copy(sums[:, 0:1]))
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK204_BAD = """\
@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    first = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, address=(0, 0))
    second = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, address=(0, 252))
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
    out = nl.full((128, 64), fill_value=1.0, dtype=x.dtype, buffer=nl.shared_hbm)  # NK205
    nl.store(out, nl.load(x))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK205_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK206_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product, engine=nisa.engine.gpsimd)  # NK206
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK206_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product, engine=nisa.engine.vector)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK207_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf, address=(0, 1023))  # NK207
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK207_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf, address=(0, 1022))
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK208_BAD = """\
@nki.jit
def sums(x):
    if nl.program_id(0) == 1:
        scratch = nl.ndarray((1, 64), dtype=x.dtype, buffer=nl.shared_hbm)  # NK208
        nisa.dma_copy(dst=scratch, src=x[0:1, :])
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.ds(nl.program_id(0) * 64, 64)
    nisa.dma_copy(dst=out[rows, :], src=x[rows, :])
    return out


CHIP = "trn2"
kernel = sums[2]
inputs = (np.ones((128, 64), np.float32),)
"""

NK208_GOOD = """\
@nki.jit
def sums(x):
    if nl.program_id(0) == 1:
        scratch = nl.ndarray((1, 64), dtype=x.dtype, buffer=nl.hbm)
        nisa.dma_copy(dst=scratch, src=x[0:1, :])
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.ds(nl.program_id(0) * 64, 64)
    nisa.dma_copy(dst=out[rows, :], src=x[rows, :])
    return out


CHIP = "trn2"
kernel = sums[2]
inputs = (np.ones((128, 64), np.float32),)
"""

NK209_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(lhs_t, rhs):
    product = nisa.nc_matmul(nl.load(lhs_t), nl.load(rhs))
    return product  # NK209


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK209_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(lhs_t, rhs):
    product = nisa.nc_matmul(nl.load(lhs_t), nl.load(rhs))
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.copy(product))
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""
