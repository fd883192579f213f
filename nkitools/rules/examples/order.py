"""The examples of the order rules."""

NK502_BAD = """\
@nki.jit
def tables(data):
    sums = nl.ndarray((2, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    out = nl.ndarray((2, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    nisa.dma_copy(dst=sums[nl.ds(core, 1), :], src=nl.load(data[nl.ds(core, 1), :]))
    other = nl.load(sums[nl.ds(1 - core, 1), :])  # NK502
    nisa.dma_copy(dst=out[nl.ds(core, 1), :], src=other)
    return out


kernel = tables[2]
inputs = (np.ones((2, 512), np.float32),)
"""

NK502_GOOD = """\
CHIP = "trn2"


@nki.jit
def tables(data):
    sums = nl.ndarray((2, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    out = nl.ndarray((2, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    nisa.dma_copy(dst=sums[nl.ds(core, 1), :], src=nl.load(data[nl.ds(core, 1), :]))
    nisa.core_barrier(data=sums, cores=(0, 1))
    other = nl.load(sums[nl.ds(1 - core, 1), :])
    nisa.dma_copy(dst=out[nl.ds(core, 1), :], src=other)
    return out


kernel = tables[2]
inputs = (np.ones((2, 512), np.float32),)
"""

NK503_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(2):
        stationary = nl.load(lhs_t[nl.ds(k * 128, 128), :])
        moving = nl.load(rhs[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=product, stationary=stationary, moving=moving, accumulate=True)  # NK503
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((256, 128), np.float32), np.ones((256, 512), np.float32))
"""

NK503_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(2):
        stationary = nl.load(lhs_t[nl.ds(k * 128, 128), :])
        moving = nl.load(rhs[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=product, stationary=stationary, moving=moving, accumulate=k > 0)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((256, 128), np.float32), np.ones((256, 512), np.float32))
"""

NK504_BAD = """\
CHIP = "trn2"


@nki.jit
def halves(data):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    rows = nl.ds(core * 64, 64)
    nisa.dma_copy(dst=out[rows, :], src=nl.load(data[rows, :]))
    if core == 0:
        nisa.core_barrier(data=out, cores=(0, 1))  # NK504
        nisa.dma_copy(dst=data, src=nl.load(out))
    return out


kernel = halves[2]
inputs = (np.ones((128, 512), np.float32),)
"""

NK504_GOOD = """\
CHIP = "trn2"


@nki.jit
def halves(data):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    rows = nl.ds(core * 64, 64)
    nisa.dma_copy(dst=out[rows, :], src=nl.load(data[rows, :]))
    nisa.core_barrier(data=out, cores=(0, 1))
    return out


kernel = halves[2]
inputs = (np.ones((128, 512), np.float32),)
"""

NK505_BAD = """\
@nki.jit
def kernel(table, rows, update):
    index = nl.load(rows)
    added = nl.load(update)
    chosen = table.vector_select(0, index)
    nisa.dma_compute(dst=chosen, srcs=[chosen, added], reduce_op=nl.add)  # NK505
    return table


inputs = (np.ones((16, 64), np.float32), np.array([[3], [7], [3], [9]], np.int32), np.ones((4, 64), np.float32))
"""

NK505_GOOD = """\
@nki.jit
def kernel(table, rows, update):
    index = nl.load(rows)
    added = nl.load(update)
    chosen = table.vector_select(0, index)
    nisa.dma_compute(dst=chosen, srcs=[chosen, added], reduce_op=nl.add)
    return table


inputs = (np.ones((16, 64), np.float32), np.array([[3], [7], [5], [9]], np.int32), np.ones((4, 64), np.float32))
"""

NK506_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(2):
        stationary = nl.load(lhs_t[nl.ds(k * 128, 128), :])
        moving = nl.load(rhs[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=product, stationary=stationary, moving=moving, accumulate=False)  # NK506
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((256, 128), np.float32), np.ones((256, 512), np.float32))
"""

NK506_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(2):
        stationary = nl.load(lhs_t[nl.ds(k * 128, 128), :])
        moving = nl.load(rhs[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=product, stationary=stationary, moving=moving, accumulate=k > 0)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((256, 128), np.float32), np.ones((256, 512), np.float32))
"""

NK507_BAD = """\
@nki.jit
def kernel(data):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    scaled = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    for k in range(2):
        nisa.tensor_scalar_reduce(  # NK507
            dst=scaled,
            data=nl.load(data[:, nl.ds(k * 512, 512)]),
            op0=nl.multiply,
            operand0=0.5,
            reduce_op=nl.maximum,
            reduce_res=largest,
            reduce_cmd=nisa.reduce_cmd.reduce,
        )
    nisa.dma_copy(dst=out, src=largest)
    return out


inputs = (np.ones((128, 1024), np.float32),)
"""

NK507_GOOD = """\
@nki.jit
def kernel(data):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    scaled = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    for k in range(2):
        nisa.tensor_scalar_reduce(
            dst=scaled,
            data=nl.load(data[:, nl.ds(k * 512, 512)]),
            op0=nl.multiply,
            operand0=0.5,
            reduce_op=nl.maximum,
            reduce_res=largest,
            reduce_cmd=nisa.reduce_cmd.reduce if k else nisa.reduce_cmd.reset_reduce,
        )
    nisa.dma_copy(dst=out, src=largest)
    return out


inputs = (np.ones((128, 1024), np.float32),)
"""

NK508_BAD = """\
@nki.jit
def totals(data):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=nl.sum(nl.load(data), axis=1, keepdims=True))  # NK508
    return out


kernel = totals[2]
inputs = (np.ones((128, 512), np.float32),)
"""

NK508_GOOD = """\
@nki.jit
def totals(data):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    half = nl.ds(64 * nl.program_id(0), 64)
    nisa.dma_copy(dst=out[half, :], src=nl.sum(nl.load(data[half, :]), axis=1, keepdims=True))
    return out


kernel = totals[2]
inputs = (np.ones((128, 512), np.float32),)
"""

NK509_BAD = """\
@nki.jit
def kernel(table, rows, values):
    index = nl.load(rows)
    tile = nl.load(values)
    nisa.dma_copy(dst=table.vector_select(0, index), src=tile)  # NK509
    return table


values = np.arange(4 * 64, dtype=np.float32).reshape(4, 64)
inputs = (np.ones((16, 64), np.float32), np.array([[3], [7], [3], [9]], np.int32), values)
"""

NK509_GOOD = """\
@nki.jit
def kernel(table, rows, values):
    index = nl.load(rows)
    tile = nl.load(values)
    nisa.dma_copy(dst=table.vector_select(0, index), src=tile)
    return table


values = np.arange(4 * 64, dtype=np.float32).reshape(4, 64)
inputs = (np.ones((16, 64), np.float32), np.array([[3], [7], [5], [9]], np.int32), values)
"""
