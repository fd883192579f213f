"""Examples near the edge of the order rules."""

NK501_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for i in nl.affine_range(63):
        tile[:, i + 1] = nl.add(tile[:, i], 1.0)  # NK501
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK501_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for i in nl.sequential_range(63):
        tile[:, i + 1] = nl.add(tile[:, i], 1.0)
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK502_BAD = """\
@nki.jit
def halves(x):
    out = nl.ndarray((127, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    rows = nl.ds(core * 63, 64)
    tile = nl.load(x[rows, :])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=core)
    nisa.dma_copy(dst=out[rows, :], src=tile)  # NK502
    return out


CHIP = "trn2"
kernel = halves[2]
inputs = (np.ones((127, 64), np.float32),)
"""

NK502_GOOD = """\
@nki.jit
def halves(x):
    out = nl.ndarray((127, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    rows = nl.ds(core * 63, 63 + core)
    tile = nl.load(x[rows, :])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=core)
    nisa.dma_copy(dst=out[rows, :], src=tile)
    return out


CHIP = "trn2"
kernel = halves[2]
inputs = (np.ones((127, 64), np.float32),)
"""

NK503_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=product, value=0.0)
    stationary, moving = nl.load(lhs_t), nl.load(rhs)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving, accumulate=True)  # NK503
    nl.store(out, nl.copy(product))
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK503_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=product, value=0.0)
    stationary, moving = nl.load(lhs_t), nl.load(rhs)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving, accumulate=False)
    nl.store(out, nl.copy(product))
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK504_BAD = """\
@nki.jit
def halves(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    rows = nl.ds(core * 64, 64)
    for _ in range(2 - core):
        nisa.dma_copy(dst=out[rows, :], src=x[rows, :])
        nisa.core_barrier(data=out, cores=(0, 1))  # NK504
    return out


CHIP = "trn2"
kernel = halves[2]
inputs = (np.ones((128, 64), np.float32),)
"""

NK504_GOOD = """\
@nki.jit
def halves(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    rows = nl.ds(core * 64, 64)
    for _ in range(2):
        nisa.dma_copy(dst=out[rows, :], src=x[rows, :])
        nisa.core_barrier(data=out, cores=(0, 1))
    return out


CHIP = "trn2"
kernel = halves[2]
inputs = (np.ones((128, 64), np.float32),)
"""

NK505_BAD = """\
@nki.jit
def kernel(table, rows, update):
    index = nl.load(rows)
    added = nl.load(update)
    chosen = table.vector_select(0, index)
    nisa.dma_compute(dst=chosen, srcs=[chosen, added], reduce_op=nl.add)  # NK505
    return table


index = np.arange(128, dtype=np.int32)[:, None]
index[127] = 0
inputs = (np.ones((128, 64), np.float32), index, np.ones((128, 64), np.float32))
"""

NK505_GOOD = """\
@nki.jit
def kernel(table, rows, update):
    index = nl.load(rows)
    added = nl.load(update)
    chosen = table.vector_select(0, index)
    nisa.dma_compute(dst=chosen, srcs=[chosen, added], reduce_op=nl.add)
    return table


index = np.arange(128, dtype=np.int32)[:, None]
inputs = (np.ones((128, 64), np.float32), index, np.ones((128, 64), np.float32))
"""

NK506_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(3):
        stationary = nl.load(lhs_t[nl.ds(k * 128, 128), :])
        moving = nl.load(rhs[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=product, stationary=stationary, moving=moving, accumulate=k > 1)  # NK506
    nl.store(out, nl.copy(product))
    return out


inputs = (np.ones((384, 128), np.float32), np.ones((384, 512), np.float32))
"""

NK506_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(3):
        stationary = nl.load(lhs_t[nl.ds(k * 128, 128), :])
        moving = nl.load(rhs[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=product, stationary=stationary, moving=moving, accumulate=k > 0)
    nl.store(out, nl.copy(product))
    return out


inputs = (np.ones((384, 128), np.float32), np.ones((384, 512), np.float32))
"""

NK507_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    scaled = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    for k in range(2):
        nisa.tensor_scalar_reduce(  # NK507
            dst=scaled,
            data=nl.load(x[:, nl.ds(k * 512, 512)]),
            op0=nl.multiply,
            operand0=0.5,
            reduce_op=nl.maximum,
            reduce_res=largest,
            reduce_cmd=nisa.reduce_cmd.reset_reduce if k == 1 else nisa.reduce_cmd.reduce,
        )
    nisa.dma_copy(dst=out, src=largest)
    return out


inputs = (np.ones((128, 1024), np.float32),)
"""

NK507_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    scaled = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    for k in range(2):
        nisa.tensor_scalar_reduce(
            dst=scaled,
            data=nl.load(x[:, nl.ds(k * 512, 512)]),
            op0=nl.multiply,
            operand0=0.5,
            reduce_op=nl.maximum,
            reduce_res=largest,
            reduce_cmd=nisa.reduce_cmd.reset_reduce if k == 0 else nisa.reduce_cmd.reduce,
        )
    nisa.dma_copy(dst=out, src=largest)
    return out


inputs = (np.ones((128, 1024), np.float32),)
"""

NK508_BAD = """\
@nki.jit
def halves(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    rows = nl.ds(core * 64, 64)
    nisa.dma_copy(dst=out[rows, :], src=x[rows, :])
    shared = nl.ndarray((1, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=shared, src=x[0:1, 0:1])  # NK508
    return out


CHIP = "trn2"
kernel = halves[2]
inputs = (np.ones((128, 64), np.float32),)
"""

NK508_GOOD = """\
@nki.jit
def halves(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    rows = nl.ds(core * 64, 64)
    nisa.dma_copy(dst=out[rows, :], src=x[rows, :])
    shared = nl.ndarray((1, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    if core == 0:
        nisa.dma_copy(dst=shared, src=x[0:1, 0:1])
    return out


CHIP = "trn2"
kernel = halves[2]
inputs = (np.ones((128, 64), np.float32),)
"""

NK509_BAD = """\
@nki.jit
def kernel(table, rows, values):
    index = nl.load(rows)
    tile = nl.load(values)
    nisa.dma_copy(dst=table.vector_select(0, index), src=tile)  # NK509
    return table


values = np.ones((4, 64), np.float32)
values[2, 63] = 2
inputs = (np.ones((16, 64), np.float32), np.array([[3], [7], [3], [9]], np.int32), values)
"""

NK509_GOOD = """\
@nki.jit
def kernel(table, rows, values):
    index = nl.load(rows)
    tile = nl.load(values)
    nisa.dma_copy(dst=table.vector_select(0, index), src=tile)
    return table


values = np.ones((4, 64), np.float32)
inputs = (np.ones((16, 64), np.float32), np.array([[3], [7], [3], [9]], np.int32), values)
"""
