"""The examples of the dtype rules."""

NK301_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)  # NK301
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 128), np.int8), np.ones((128, 512), np.int8))
"""

NK301_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t, dtype=nl.bfloat16)
    moving = nl.load(rhs, dtype=nl.bfloat16)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 128), np.int8), np.ones((128, 512), np.int8))
"""

NK302_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t, dtype=nl.bfloat16)
    moving = nl.load(rhs)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)  # NK302
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK302_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t, dtype=nl.bfloat16)
    moving = nl.load(rhs, dtype=nl.float16)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK303_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.psum)
    stationary = nl.load(lhs_t, dtype=nl.bfloat16)
    moving = nl.load(rhs, dtype=nl.bfloat16)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)  # NK303
    result = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK303_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t, dtype=nl.bfloat16)
    moving = nl.load(rhs, dtype=nl.bfloat16)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
    result = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK304_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=nl.int8, buffer=nl.shared_hbm)
    tile = nl.load(x)
    quantized = nl.ndarray((128, 64), dtype=nl.int8, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=quantized, data=tile, op0=nl.multiply, operand0=100.0)  # NK304
    nisa.dma_copy(dst=out, src=quantized)
    return out


inputs = (np.linspace(-2, 2, 128 * 64, dtype=np.float32).reshape(128, 64),)
"""

NK304_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=nl.int8, buffer=nl.shared_hbm)
    tile = nl.load(x)
    scaled = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply, operand0=100.0)
    quantized = nl.ndarray((128, 64), dtype=nl.int8, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=quantized, data=scaled, op0=nl.minimum, operand0=127.0, op1=nl.maximum, operand1=-128.0)
    nisa.dma_copy(dst=out, src=quantized)
    return out


inputs = (np.linspace(-2, 2, 128 * 64, dtype=np.float32).reshape(128, 64),)
"""

NK305_BAD = """\
@nki.jit
def kernel(angles):
    out = nl.ndarray(angles.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(angles)
    sines = nl.ndarray(angles.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=sines, op=nl.sin, data=tile)  # NK305
    nisa.dma_copy(dst=out, src=sines)
    return out


inputs = (np.linspace(-9, 9, 128 * 64, dtype=np.float32).reshape(128, 64),)
"""

NK305_GOOD = """\
@nki.jit
def kernel(angles):
    out = nl.ndarray(angles.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(angles)
    sines = nl.sin(tile)
    nisa.dma_copy(dst=out, src=sines)
    return out


inputs = (np.linspace(-9, 9, 128 * 64, dtype=np.float32).reshape(128, 64),)
"""

NK306_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    largest = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=largest, op=nl.abs_max, data=tile, axis=1)  # NK306
    nisa.dma_copy(dst=out, src=largest)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK306_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    magnitudes = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=magnitudes, op=nl.abs, data=tile)
    largest = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=magnitudes, axis=1)
    nisa.dma_copy(dst=out, src=largest)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""
