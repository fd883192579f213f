"""Examples near the edge of the language rules."""

NK606_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x, priority=1)  # NK606
    nisa.dma_copy(dst=out, src=tile)
    return out


CHIP = "trn2"
inputs = (np.ones((128, 64), np.float32),)
"""

NK606_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


CHIP = "trn2"
inputs = (np.ones((128, 64), np.float32),)
"""

NK607_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.flip(tile))  # NK607
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK607_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK608_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((nl.par_dim(128), 64), dtype=x.dtype, buffer=nl.sbuf)  # NK608
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK608_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK609_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    scaled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply)  # NK609
    nisa.dma_copy(dst=out, src=scaled)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK609_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    scaled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out, src=scaled)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK613_BAD = """\
@nki.jit
def copied(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


CHIP = "trn2"
kernel = copied[3]  # NK613
inputs = (np.ones((128, 64), np.float32),)
"""

NK613_GOOD = """\
@nki.jit
def copied(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


CHIP = "trn2"
kernel = copied[1]
inputs = (np.ones((128, 64), np.float32),)
"""

NK615_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.fmod(tile, 8.0))  # NK615
    return out


inputs = (np.arange(128 * 64, dtype=np.float32).reshape(128, 64),)
"""

NK615_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.subtract(tile, 8.0))
    return out


inputs = (np.arange(128 * 64, dtype=np.float32).reshape(128, 64),)
"""

NK616_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i, start in enumerate((0, 64)):  # NK616
        rows = nl.ds(start, 64)
        nl.store(out[rows, :], nl.multiply(nl.load(x[rows, :]), i))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK616_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        rows = nl.ds(i * 64, 64)
        nl.store(out[rows, :], nl.multiply(nl.load(x[rows, :]), i))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK617_BAD = """\
calls = 0


@nki.jit
def kernel(x):
    global calls  # NK617
    calls = calls + 1
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), calls))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK617_GOOD = """\
calls = 0


@nki.jit
def kernel(x):
    calls = 0
    calls = calls + 1
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), calls))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK618_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.dynamic_range(1):  # NK618
        nl.store(out, nl.load(x))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK618_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.sequential_range(1):
        nl.store(out, nl.load(x))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK619_BAD = """\
@nki.jit
def kernel(x, scale=None):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    scale = 1.0 if scale is None else scale  # nki: ignore[NK661] compiled with NKI 0.6  # NK619
    nl.store(out, nl.multiply(nl.load(x), scale))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK619_GOOD = """\
@nki.jit
def kernel(x, scale=None):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    scale = 1.0 if scale is None else scale  # nki: ignore[NK616] compiled with NKI 0.6
    nl.store(out, nl.multiply(nl.load(x), scale))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""
