"""The examples of the shape rules of matmuls."""

NK103_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.sbuf)
    moving = nl.ndarray((256, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=stationary, src=lhs_t)
    nisa.dma_copy(dst=moving, src=rhs)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)  # NK103
    result = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((256, 64), np.float32), np.ones((256, 512), np.float32))
"""

NK103_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(2):
        stationary = nl.load(lhs_t[nl.ds(k * 128, 128), :])
        moving = nl.load(rhs[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=product, stationary=stationary, moving=moving, accumulate=k > 0)
    result = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((256, 64), np.float32), np.ones((256, 512), np.float32))
"""

NK104_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)  # NK104
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 256), np.float32), np.ones((128, 512), np.float32))
"""

NK104_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((256, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    moving = nl.load(rhs)
    for m in range(2):
        columns = nl.ds(m * 128, 128)
        stationary = nl.load(lhs_t[:, columns])
        product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
        result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=product)
        nisa.dma_copy(dst=out[columns, :], src=result)
    return out


inputs = (np.ones((128, 256), np.float32), np.ones((128, 512), np.float32))
"""

NK105_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    product = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)  # NK105
    result = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 1024), np.float32))
"""

NK105_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary = nl.load(lhs_t)
    for n in range(2):
        columns = nl.ds(n * 512, 512)
        moving = nl.load(rhs[:, columns])
        product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
        result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=product)
        nisa.dma_copy(dst=out[:, columns], src=result)
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 1024), np.float32))
"""

NK106_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    products = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=products[:, 256:768], stationary=stationary, moving=moving)  # NK106
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=products[:, 256:768])
    nisa.dma_copy(dst=out, src=result)
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK106_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    products = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=products[:, 512:1024], stationary=stationary, moving=moving)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=products[:, 512:1024])
    nisa.dma_copy(dst=out, src=result)
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""
