"""The examples of the rules that only a kernel's source shows."""

NK616_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    widths = [x.shape[1] // parts for parts in (2, 4)]  # NK616
    nl.store(out, nl.multiply(nl.load(x), widths[0]))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK616_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    widths = []
    for parts in (2, 4):
        widths.append(x.shape[1] // parts)
    nl.store(out, nl.multiply(nl.load(x), widths[0]))
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK617_BAD = """\
scales = [2.0]


def grow():
    scales[0] = 2 * scales[0]


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), scales[0]))  # NK617
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK617_GOOD = """\
@nki.jit
def kernel(x, scale):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), scale))
    return out


inputs = (np.ones((128, 64), np.float32), 2.0)
"""

NK618_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((128, 64), dtype=x.dtype)
    for _ in nl.dynamic_range(4):  # NK618
        nisa.tensor_tensor(dst=total, data1=total, data2=nl.load(x), op=nl.add)
    nl.store(out, total)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK618_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((128, 64), dtype=x.dtype)

    def add(i):
        nisa.tensor_tensor(dst=total, data1=total, data2=nl.load(x), op=nl.add)

    nl.fori_loop(0, 4, add)
    nl.store(out, total)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK619_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    # nki: ignore[NK602] no finding here any more  # NK619
    nl.store(out, nl.load(x))
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
