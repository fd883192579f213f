"""Examples near the edge of the language rules, in the legacy dialect."""

NK601_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    total = nl.ndarray((128, 1), dtype=x.dtype)
    for row in tile:  # NK601
        total[...] = nl.max(row, axis=1)
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK601_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    total = nl.ndarray((128, 1), dtype=x.dtype)
    for _ in range(2):
        total[...] = nl.max(tile, axis=1, keepdims=True)
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK602_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(128)[:, None]
    columns = nl.arange(64)[None, :]
    tile = nl.load(x[rows, columns])
    if rows < 100:  # NK602
        tile[rows, columns] = nl.multiply(tile[rows, columns], 2.0)
    nl.store(out[rows, columns], tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK602_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(128)[:, None]
    columns = nl.arange(64)[None, :]
    tile = nl.load(x[rows, columns])
    tile[rows, columns] = nl.multiply(tile[rows, columns], 2.0, mask=rows < 100)
    nl.store(out[rows, columns], tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK603_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(128)
    columns = nl.arange(64)[None, :]
    tile = nl.load(x[rows, columns])  # NK603
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK603_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(128)[:, None]
    columns = nl.arange(64)[None, :]
    tile = nl.load(x[rows, columns])
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK604_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    rows, columns = nl.mgrid[0:128, 0:64]
    nl.store(out[rows, columns], nl.zeros((128, 64), dtype=x.dtype))
    tile = nl.load(x[rows, columns])
    nl.store(out[rows, columns], tile, mask=(rows * columns < 1000))  # NK604
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK604_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    rows, columns = nl.mgrid[0:128, 0:64]
    nl.store(out[rows, columns], nl.zeros((128, 64), dtype=x.dtype))
    tile = nl.load(x[rows, columns])
    nl.store(out[rows, columns], tile, mask=(2 * rows + columns < 1000))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK605_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        if i == 0:
            tile = nl.load(x)
        nl.store(out, tile)  # NK605
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK605_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        tile = nl.load(x)
        nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK610_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def doubled(x, out):
    nl.store(out, nl.multiply(nl.load(x), 2.0))


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    doubled[1](x, out)  # NK610
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK610_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def doubled(x, out):
    nl.store(out, nl.multiply(nl.load(x), 2.0))


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    doubled(x, out)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK611_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

ones = nl.ones((128, 64), dtype=nl.float32)  # NK611


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(nl.load(x), ones))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK611_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl



@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ones = nl.ones((128, 64), dtype=nl.float32)
    nl.store(out, nl.add(nl.load(x), ones))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK612_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = nl.ndarray((1, nl.par_dim(128), 64), dtype=x.dtype, buffer=nl.sbuf)  # NK612
    tiles[0] = nl.load(x)
    nl.store(out, tiles[0])
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK612_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = nl.ndarray((nl.par_dim(128), 1, 64), dtype=x.dtype, buffer=nl.sbuf)
    tiles[:, 0, :] = nl.load(x)
    nl.store(out, tiles[:, 0, :])
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK614_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
    tile[...] = nl.load(x)
    tile[...] = nisa.activation(op=nl.exp, data=tile)  # NK614
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK614_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
    zero = nl.ndarray((128, 1), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=256))
    zero[...] = 0.0
    tile[...] = nl.load(x)
    tile[...] = nisa.activation(op=nl.exp, data=tile, bias=zero)
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK620_BAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((100, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f], mask=(i_p < 100))
    nl.store(out[i_p, i_f], tile, mask=(i_p < 100 and i_p >= 0))  # NK620
    return out


inputs = (np.ones((100, 64), np.float32),)
"""

NK620_GOOD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((100, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f], mask=(i_p < 100))
    nl.store(out[i_p, i_f], tile, mask=(i_p < 100) & (i_p >= 0))
    return out


inputs = (np.ones((100, 64), np.float32),)
"""
