"""The examples of the data rules."""

NK401_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:100, :], src=x)
    result = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=result, op=nl.exp, data=tile)  # NK401
    nisa.dma_copy(dst=out, src=result[0:100, :])
    return out


inputs = (np.ones((100, 64), np.float32),)
"""

NK401_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:100, :], src=x)
    result = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=result[0:100, :], op=nl.exp, data=tile[0:100, :])
    nisa.dma_copy(dst=out, src=result[0:100, :])
    return out


inputs = (np.ones((100, 64), np.float32),)
"""

NK402_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        tile = nl.load(x[i * 128 : (i + 1) * 128, :])  # NK402
        nl.store(out[i * 128 : (i + 1) * 128, :], tile)
    return out


inputs = (np.ones((200, 64), np.float32),)
"""

NK402_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        end = min((i + 1) * 128, x.shape[0])
        tile = nl.load(x[i * 128 : end, :])
        nl.store(out[i * 128 : end, :], tile)
    return out


inputs = (np.ones((200, 64), np.float32),)
"""

NK403_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # NK403
    for i in range(x.shape[0] // 128):
        rows = nl.ds(i * 128, 128)
        nl.store(out[rows, :], nl.load(x[rows, :]))
    return out


inputs = (np.ones((257, 64), np.float32),)
"""

NK403_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, x.shape[0], 128):
        rows = nl.ds(start, min(128, x.shape[0] - start))
        nl.store(out[rows, :], nl.load(x[rows, :]))
    return out


inputs = (np.ones((257, 64), np.float32),)
"""

NK404_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    total = nl.sum(tile, axis=1, keepdims=True)
    inverse = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inverse, data=total)  # NK404
    shares = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=shares, data=tile, op0=nl.multiply, operand0=inverse)
    nisa.dma_copy(dst=out, src=shares)
    return out


inputs = (np.arange(128 * 64, dtype=np.float32).reshape(128, 64) * (np.arange(128) != 5)[:, None],)
"""

NK404_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    total = nl.sum(tile, axis=1, keepdims=True)
    inverse = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=total, data=total, op0=nl.maximum, operand0=1e-6)
    nisa.reciprocal(dst=inverse, data=total)
    shares = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=shares, data=tile, op0=nl.multiply, operand0=inverse)
    nisa.dma_copy(dst=out, src=shares)
    return out


inputs = (np.arange(128 * 64, dtype=np.float32).reshape(128, 64) * (np.arange(128) != 5)[:, None],)
"""

NK405_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f], mask=i_p < 100)
    nl.store(out[i_p, i_f], nl.exp(tile))  # NK405
    return out


inputs = (np.ones((100, 64), np.float32),)
"""

NK405_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((100, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f], mask=i_p < 100)
    nl.store(out[i_p, i_f], nl.exp(tile), mask=i_p < 100)
    return out


inputs = (np.ones((100, 64), np.float32),)
"""

NK406_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    tile = nl.load(x)
    nl.store(x, nl.exp(tile))  # NK406
    return x


inputs = (np.ones((128, 64), np.float32),)
"""

NK406_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.exp(tile))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK407_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt


@nki.jit
def kernel(x: nt.mutable_tensor):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, tile)
    nl.store(x, nl.multiply(tile, 2.0))
    return out  # NK407


inputs = (np.ones((128, 64), np.float32),)
"""

NK407_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt


@nki.jit
def kernel(x: nt.mutable_tensor):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, tile)
    nl.store(x, nl.multiply(tile, 2.0))
    return out, x


inputs = (np.ones((128, 64), np.float32),)
"""

NK408_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # NK408
    nl.store(out, nl.exp(nl.load(x)))


inputs = (np.ones((128, 64), np.float32),)
"""

NK408_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.exp(nl.load(x)))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""
