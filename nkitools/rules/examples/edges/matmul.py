"""Examples near the edge of the shape rules of matmuls."""

NK103_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    nisa.nc_matmul(  # NK103
        dst=product, stationary=stationary, moving=moving, tile_position=(0, 0), tile_size=(64, 64)
    )
    result = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((65, 64), np.float32), np.ones((65, 512), np.float32))
"""

NK103_GOOD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    nisa.nc_matmul(
        dst=product, stationary=stationary, moving=moving, tile_position=(0, 0), tile_size=(64, 64)
    )
    result = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((64, 64), np.float32), np.ones((64, 512), np.float32))
"""

NK104_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((lhs_t.shape[1], 512), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    product = nisa.nc_matmul(stationary, moving)  # NK104
    nl.store(out, nl.copy(product))
    return out


inputs = (np.ones((128, 129), np.float32), np.ones((128, 512), np.float32))
"""

NK104_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((lhs_t.shape[1], 512), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    product = nisa.nc_matmul(stationary, moving)
    nl.store(out, nl.copy(product))
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK105_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, rhs.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    product = nisa.nc_matmul(stationary, moving)  # NK105
    nl.store(out, nl.copy(product))
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 513), np.float32))
"""

NK105_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, rhs.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    product = nisa.nc_matmul(stationary, moving)
    nl.store(out, nl.copy(product))
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

NK106_BAD = """\
@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    products = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    columns = nl.ds(1, 512)
    nisa.nc_matmul(dst=products[:, columns], stationary=stationary, moving=moving)  # NK106
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=products[:, columns])
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
    columns = nl.ds(0, 512)
    nisa.nc_matmul(dst=products[:, columns], stationary=stationary, moving=moving)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=products[:, columns])
    nisa.dma_copy(dst=out, src=result)
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""
