"""The examples of the order rules."""

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
