"""Examples near the edge of the data rules."""

NK401_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:127, :], src=x[0:127, :])
    nisa.dma_copy(dst=tile[127:128, 0:63], src=x[127:128, 0:63])
    nisa.dma_copy(dst=out, src=tile)  # NK401
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK401_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:127, :], src=x[0:127, :])
    nisa.dma_copy(dst=tile[127:128, 0:64], src=x[127:128, 0:64])
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK402_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f + 1])  # NK402
    nl.store(out[i_p, i_f], tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK402_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f + 1])
    nl.store(out[i_p, i_f], tile)
    return out


inputs = (np.ones((128, 65), np.float32),)
"""

NK403_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # NK403
    tile = nl.load(x)
    nl.store(out[0:127, :], tile[0:127, :])
    nl.store(out[127:128, 0:63], tile[127:128, 0:63])
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK403_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out[0:127, :], tile[0:127, :])
    nl.store(out[127:128, 0:64], tile[127:128, 0:64])
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK404_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    logarithms = nl.log(tile)  # NK404
    nl.store(out, logarithms)
    return out


inputs = (np.arange(128 * 64, dtype=np.float32).reshape(128, 64) + 0.0,)
"""

NK404_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    logarithms = nl.log(tile)
    nl.store(out, logarithms)
    return out


inputs = (np.arange(128 * 64, dtype=np.float32).reshape(128, 64) + 1.0,)
"""

NK405_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.ndarray((128, 64), dtype=x.dtype)
    tile[i_p, i_f] = nl.load(x[i_p, i_f], mask=i_f < 63)
    total = nl.sum(tile, axis=1, keepdims=True)  # NK405
    nl.store(out, total)
    return out


inputs = (np.ones((128, 63), np.float32),)
"""

NK405_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.zeros((128, 64), dtype=x.dtype)
    tile[i_p, i_f] = nl.load(x[i_p, i_f], mask=i_f < 63)
    total = nl.sum(tile, axis=1, keepdims=True)
    nl.store(out, total)
    return out


inputs = (np.ones((128, 63), np.float32),)
"""

NK406_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    one = nl.zeros((1, 1), dtype=x.dtype)
    nl.store(x[127:128, 63:64], one)  # NK406
    return x


inputs = (np.ones((128, 64), np.float32),)
"""

NK406_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt


@nki.jit
def kernel(x: nt.mutable_tensor):
    one = nl.zeros((1, 1), dtype=x.dtype)
    nl.store(x[127:128, 63:64], one)
    return x


inputs = (np.ones((128, 64), np.float32),)
"""

NK407_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt


@nki.jit
def kernel(x: nt.mutable_tensor, y: nt.mutable_tensor):
    x_tile, y_tile = nl.load(x), nl.load(y)
    nl.store(x, y_tile)
    nl.store(y, x_tile)
    return x  # NK407


inputs = (np.ones((128, 64), np.float32), np.zeros((128, 64), np.float32))
"""

NK407_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt


@nki.jit
def kernel(x: nt.mutable_tensor, y: nt.mutable_tensor):
    x_tile, y_tile = nl.load(x), nl.load(y)
    nl.store(x, y_tile)
    nl.store(y, x_tile)
    return x, y


inputs = (np.ones((128, 64), np.float32), np.zeros((128, 64), np.float32))
"""

NK408_BAD = """\
def doubled(x):
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # NK408
    nl.store(result, nl.multiply(nl.load(x), 2.0))
    return result


@nki.jit
def kernel(x):
    out = doubled(x)


inputs = (np.ones((128, 64), np.float32),)
"""

NK408_GOOD = """\
def doubled(x, scratch):
    nl.store(scratch, nl.multiply(nl.load(x), 2.0))


@nki.jit
def kernel(x):
    scratch = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    doubled(x, scratch)
    nl.store(out, nl.multiply(nl.load(x), 3.0))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""
