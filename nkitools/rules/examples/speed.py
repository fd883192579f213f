"""The examples of the speed rules."""

NK701_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(256):
        columns = nl.ds(i * 32, 32)
        nisa.dma_copy(dst=tile[:, columns], src=x[:, columns])  # NK701
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 8192), np.float32),)
"""

NK701_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(16):
        columns = nl.ds(i * 512, 512)
        nisa.dma_copy(dst=tile[:, columns], src=x[:, columns])
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 8192), np.float32),)
"""

NK702_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for i in nl.affine_range(256):
        row = tile[:, nl.ds(i * 128, 128)]
        nisa.tensor_scalar(dst=row, data=row, op0=nl.multiply, operand0=2.0)  # NK702
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((1, 256 * 128), np.float32),)
"""

NK702_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x.reshape((128, 256)))
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out.reshape((128, 256)), src=tile)
    return out


inputs = (np.ones((1, 256 * 128), np.float32),)
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
    left, right = nl.copy(nl.load(a), dtype=nl.bfloat16), nl.copy(nl.load(b), dtype=nl.bfloat16)
    for k in nl.affine_range(256):
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
    for k in nl.affine_range(256):
        rows = nl.ds(k * 32, 32)
        left, right = nl.load(a[rows, :], dtype=nl.bfloat16), nl.load(b[rows, :], dtype=nl.bfloat16)
        nisa.nc_matmul(dst=result, stationary=left, moving=right, accumulate=k > 0)  # NK704
    nisa.dma_copy(dst=out, src=nl.copy(result))
    return out


inputs = (np.ones((8192, 128), np.float32), np.ones((8192, 128), np.float32))
"""

NK704_GOOD = """\
@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    result = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    for k in nl.affine_range(64):
        rows = nl.ds(k * 128, 128)
        left, right = nl.load(a[rows, :], dtype=nl.bfloat16), nl.load(b[rows, :], dtype=nl.bfloat16)
        nisa.nc_matmul(dst=result, stationary=left, moving=right, accumulate=k > 0)
    nisa.dma_copy(dst=out, src=nl.copy(result))
    return out


inputs = (np.ones((8192, 128), np.float32), np.ones((8192, 128), np.float32))
"""
