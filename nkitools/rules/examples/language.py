"""The examples of the language rules."""

NK601_BAD = """\
@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    y_tile = nl.load(y)
    total = x_tile + y_tile  # NK601
    nl.store(out, total)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 64), np.float32))
"""

NK601_GOOD = """\
@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    y_tile = nl.load(y)
    total = nl.add(x_tile, y_tile)
    nl.store(out, total)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 64), np.float32))
"""

NK602_BAD = """\
@nki.jit
def kernel(x, gate):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    open_gate = nl.load(gate)
    if open_gate:  # NK602
        nl.store(out, tile)
    else:
        nl.store(out, nl.zeros(x.shape, dtype=x.dtype))
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 1), np.float32))
"""

NK602_GOOD = """\
@nki.jit
def kernel(x, gate):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    open_gate = nl.load(gate)
    gated = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=gated, data=tile, op0=nl.multiply, operand0=open_gate)
    nl.store(out, gated)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 1), np.float32))
"""

NK603_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    half = x.shape[1] / 2
    nisa.dma_copy(dst=out, src=tile[:, 0:half])  # NK603
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK603_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    half = x.shape[1] // 2
    nisa.dma_copy(dst=out, src=tile[:, 0:half])
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK604_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(64)[None, :]
    tile = nl.load(x[i_p, i_f], mask=(i_p // 4 < 25))  # NK604
    nl.store(out[i_p, i_f], tile, mask=(i_p < 100))
    return out


inputs = (np.ones((100, 64), np.float32),)
"""

NK604_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(64)[None, :]
    tile = nl.load(x[i_p, i_f], mask=(i_p < 4 * 25))
    nl.store(out[i_p, i_f], tile, mask=(i_p < 100))
    return out


inputs = (np.ones((100, 64), np.float32),)
"""

NK605_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.sequential_range(2):
        tile = nl.load(x[i])
    nl.store(out, tile)  # NK605
    return out


inputs = (np.ones((2, 128, 64), np.float32),)
"""

NK605_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype)
    for i in nl.sequential_range(2):
        tile[...] = nl.load(x[i])
    nl.store(out, tile)
    return out


inputs = (np.ones((2, 128, 64), np.float32),)
"""

NK606_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    copied = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=copied, src=tile, engine=nisa.engine.scalar)  # NK606
    nisa.dma_copy(dst=out, src=copied)
    return out


CHIP = "trn1"
inputs = (np.ones((128, 64), np.float32),)
"""

NK606_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    copied = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=copied, op=nl.copy, data=tile)
    nisa.dma_copy(dst=out, src=copied)
    return out


CHIP = "trn1"
inputs = (np.ones((128, 64), np.float32),)
"""

NK607_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    tile[:, 0:32] = 0.0  # NK607
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK607_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.memset(dst=tile[:, 0:32], value=0.0)
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK608_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]  # NK608
    i_f = nl.arange(64)[None, :]
    nl.store(out[i_p, i_f], nl.load(x[i_p, i_f]))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK608_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out[0:128, 0:64], nl.load(x[0:128, 0:64]))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK609_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=result, func=nl.exp, data=tile)  # NK609
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK609_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=result, op=nl.exp, data=tile)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK612_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = nl.ndarray((2, nl.par_dim(128), 64), dtype=x.dtype, buffer=nl.sbuf)  # NK612
    for i in nl.affine_range(2):
        tiles[i] = nl.load(x[nl.ds(i * 128, 128), :])
        nl.store(out[nl.ds(i * 128, 128), :], tiles[i])
    return out


inputs = (np.ones((256, 64), np.float32),)
"""

NK612_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(2):
        tile = nl.load(x[nl.ds(i * 128, 128), :])
        nl.store(out[nl.ds(i * 128, 128), :], tile)
    return out


inputs = (np.ones((256, 64), np.float32),)
"""

NK614_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    doubled = nl.ndarray(x.shape, dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
    tile = nl.load(x)  # NK614
    doubled[...] = nl.multiply(tile, 2.0)
    nl.store(out, doubled)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK614_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    doubled = nl.ndarray(x.shape, dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=256))
    tile[...] = nl.load(x)
    doubled[...] = nl.multiply(tile, 2.0)
    nl.store(out, doubled)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK615_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.mod(nl.load(x), 8.0))  # NK615
    return out


inputs = (np.arange(128 * 64, dtype=np.float32).reshape(128, 64),)
"""

NK615_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    quotient = nl.floor(nl.multiply(tile, 1 / 8))
    nl.store(out, nl.subtract(tile, nl.multiply(quotient, 8.0)))
    return out


inputs = (np.arange(128 * 64, dtype=np.float32).reshape(128, 64),)
"""
