"""Examples near the edge of the shape rules."""

NK101_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)  # NK101
    return out


inputs = (np.ones((129, 64), np.float32),)
"""

NK101_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK102_BAD = """\
@nki.jit
def kernel(x, y):
    out = nl.ndarray(y.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    y_tile = nl.load(y)
    total = nl.ndarray(y.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=x_tile, data2=y_tile, op=nl.add)  # NK102
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((127, 64), np.float32))
"""

NK102_GOOD = """\
@nki.jit
def kernel(x, y):
    out = nl.ndarray(y.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    y_tile = nl.load(y)
    total = nl.ndarray(y.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=x_tile[0:127, :], data2=y_tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((127, 64), np.float32))
"""

NK107_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    # 192 KiB of each partition, without the 16 of the compiler: 45056 elements of float32.
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=1.0)  # NK107
    nisa.dma_copy(dst=out, src=tile)
    return out


CHIP = "trn1"
inputs = (np.ones((1, 45057), np.float32),)
"""

NK107_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    # 192 KiB of each partition, without the 16 of the compiler: 45056 elements of float32.
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


CHIP = "trn1"
inputs = (np.ones((1, 45056), np.float32),)
"""

NK108_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.memset(dst=tile[32:65, :], value=0.0)  # NK108
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK108_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.memset(dst=tile[32:64, :], value=0.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK109_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 63), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, tile)  # NK109
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK109_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 63), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, tile[0:128, 0:63])
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK110_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    pairs = (128, 2, 2, 2, 2, 4)
    roots = nl.ndarray(pairs, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=roots, op=nl.sqrt, data=tile.reshape(pairs))  # NK110
    nisa.dma_copy(dst=out, src=roots.reshape((128, 64)))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK110_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    pairs = (128, 2, 2, 2, 8)
    roots = nl.ndarray(pairs, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=roots, op=nl.sqrt, data=tile.reshape(pairs))
    nisa.dma_copy(dst=out, src=roots.reshape((128, 64)))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK111_BAD = """\
@nki.jit
def kernel(x, scale):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    factor = nl.load(scale)
    scaled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply, operand0=factor)  # NK111
    nisa.dma_copy(dst=out, src=scaled)
    return out


inputs = (np.ones((2, 64), np.float32), np.ones((1, 1), np.float32))
"""

NK111_GOOD = """\
@nki.jit
def kernel(x, scale):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    factor = nl.load(scale.broadcast(0, 2))
    scaled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply, operand0=factor)
    nisa.dma_copy(dst=out, src=scaled)
    return out


inputs = (np.ones((2, 64), np.float32), np.ones((1, 1), np.float32))
"""

NK112_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    total = nl.sum(tile, axis=0, keepdims=True)  # NK112
    nl.store(out, total)
    return out


inputs = (np.ones((128, 128), np.float32),)
"""

NK112_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    total = nl.sum(tile, axis=1, keepdims=True)
    nl.store(out, total)
    return out


inputs = (np.ones((128, 128), np.float32),)
"""

NK113_BAD = """\
@nki.jit
def kernel(x, index):
    out = nl.ndarray((x.shape[0], 32), dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    index_tile = nl.load(index)
    gathered = nl.ndarray((x.shape[0], 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.local_gather(dst=gathered, src_buffer=x_tile, index=index_tile)  # NK113
    nisa.dma_copy(dst=out, src=gathered)
    return out


inputs = (np.ones((17, 64), np.float32), np.zeros((17, 2), np.uint16))
"""

NK113_GOOD = """\
@nki.jit
def kernel(x, index):
    out = nl.ndarray((x.shape[0], 32), dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    index_tile = nl.load(index)
    gathered = nl.ndarray((x.shape[0], 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.local_gather(dst=gathered, src_buffer=x_tile, index=index_tile)
    nisa.dma_copy(dst=out, src=gathered)
    return out


inputs = (np.ones((16, 64), np.float32), np.zeros((16, 2), np.uint16))
"""
