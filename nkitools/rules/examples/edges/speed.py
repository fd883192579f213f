"""Examples near the edge of the speed rules."""

NK701_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(256):
        columns = nl.ds(i * 63, 63)
        nisa.dma_copy(dst=tile[:, columns], src=x[:, columns])  # NK701
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 256 * 63), np.float32),)
"""

NK701_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(256):
        columns = nl.ds(i * 64, 64)
        nisa.dma_copy(dst=tile[:, columns], src=x[:, columns])
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 256 * 64), np.float32),)
"""

NK702_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((64, 256), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for i in nl.affine_range(256):
        column = tile[:, nl.ds(i * 8, 8)]
        nisa.tensor_scalar(dst=column, data=column, op0=nl.multiply, operand0=2.0)  # NK702
    nisa.dma_copy(dst=out, src=tile[0:64, 0:256])
    return out


inputs = (np.ones((64, 256 * 8), np.float32),)
"""

NK702_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((64, 256), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for i in nl.affine_range(256):
        column = tile[:, nl.ds(i * 8, 8)]
        nisa.tensor_scalar(dst=column, data=column, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out, src=tile[0:64, 0:256])
    return out


inputs = (np.ones((65, 256 * 8), np.float32),)
"""

NK703_BAD = """\
@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    result = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    left, right = nl.load(a), nl.load(b)
    for k in nl.affine_range(256):
        nisa.nc_matmul(dst=result, stationary=left, moving=right, accumulate=k > 0)  # NK703
    nisa.dma_copy(dst=out, src=nl.copy(result))
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 128), np.float32))
"""

NK703_GOOD = """\
@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    result = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    left, right = nl.load(a), nl.load(b)
    for k in nl.affine_range(255):
        nisa.nc_matmul(dst=result, stationary=left, moving=right, accumulate=k > 0)
    nisa.dma_copy(dst=out, src=nl.copy(result))
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 128), np.float32))
"""

NK704_BAD = """\
@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    result = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    left, right = nl.load(a, dtype=nl.bfloat16), nl.load(b, dtype=nl.bfloat16)
    for k in nl.affine_range(256):
        nisa.nc_matmul(dst=result, stationary=left, moving=right, accumulate=k > 0)  # NK704
    nisa.dma_copy(dst=out, src=nl.copy(result))
    return out


inputs = (np.ones((64, 128), np.float32), np.ones((64, 128), np.float32))
"""

NK704_GOOD = """\
@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    result = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    left, right = nl.load(a, dtype=nl.bfloat16), nl.load(b, dtype=nl.bfloat16)
    for k in nl.affine_range(256):
        nisa.nc_matmul(dst=result, stationary=left, moving=right, accumulate=k > 0)
    nisa.dma_copy(dst=out, src=nl.copy(result))
    return out


inputs = (np.ones((65, 128), np.float32), np.ones((65, 128), np.float32))
"""
