"""Examples near the edge of the dtype rules."""

NK301_BAD = """\
@nki.jit
def kernel(x, bits):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    masked = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=masked, data1=tile, data2=nl.load(bits), op=nl.bitwise_and)  # NK301
    nisa.dma_copy(dst=out, src=masked)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 64), np.int32))
"""

NK301_GOOD = """\
@nki.jit
def kernel(x, bits):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    masked = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=masked, data1=tile, data2=nl.load(bits), op=nl.bitwise_and)
    nisa.dma_copy(dst=out, src=masked)
    return out


inputs = (np.ones((128, 64), np.int32), np.ones((128, 64), np.int32))
"""

NK302_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t, dtype=nl.float8_e4m3)
    moving = nl.load(rhs)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)  # NK302
    nl.store(out, nl.copy(product))
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK302_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t, dtype=nl.float8_e4m3)
    moving = nl.load(rhs, dtype=nl.bfloat16)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
    nl.store(out, nl.copy(product))
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK303_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float16, buffer=nl.psum)
    stationary = nl.load(lhs_t, dtype=nl.bfloat16)
    moving = nl.load(rhs, dtype=nl.bfloat16)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)  # NK303
    nl.store(out, nl.copy(product))
    return out


CHIP = "trn3"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK303_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.psum)
    stationary = nl.load(lhs_t, dtype=nl.bfloat16)
    moving = nl.load(rhs, dtype=nl.bfloat16)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
    nl.store(out, nl.copy(product))
    return out


CHIP = "trn3"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK304_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.int8, buffer=nl.shared_hbm)
    tile = nl.load(x)
    rounded = nl.ndarray(x.shape, dtype=nl.int8, buffer=nl.sbuf)
    nisa.tensor_copy(dst=rounded, src=tile)  # NK304
    nisa.dma_copy(dst=out, src=rounded)
    return out


inputs = (np.linspace(-128.0, 127.6, 128 * 64, dtype=np.float32).reshape(128, 64),)
"""

NK304_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.int8, buffer=nl.shared_hbm)
    tile = nl.load(x)
    rounded = nl.ndarray(x.shape, dtype=nl.int8, buffer=nl.sbuf)
    nisa.tensor_copy(dst=rounded, src=tile)
    nisa.dma_copy(dst=out, src=rounded)
    return out


inputs = (np.linspace(-128.0, 127.4, 128 * 64, dtype=np.float32).reshape(128, 64),)
"""

NK305_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    sines = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=sines, op=nl.sin, data=tile)  # NK305
    nisa.dma_copy(dst=out, src=sines)
    return out


inputs = (np.linspace(-3.14, 3.15, 128 * 64, dtype=np.float32).reshape(128, 64),)
"""

NK305_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    sines = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=sines, op=nl.sin, data=tile)
    nisa.dma_copy(dst=out, src=sines)
    return out


inputs = (np.linspace(-3.14, 3.14, 128 * 64, dtype=np.float32).reshape(128, 64),)
"""

NK306_BAD = """\
@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    both = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=both, data1=nl.load(x), data2=nl.load(y), op=nl.exp)  # NK306
    nisa.dma_copy(dst=out, src=both)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 64), np.float32))
"""

NK306_GOOD = """\
@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    both = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=both, data1=nl.load(x), data2=nl.load(y), op=nl.power)
    nisa.dma_copy(dst=out, src=both)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 64), np.float32))
"""
