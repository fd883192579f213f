"""The examples of the rules about launches."""

NK610_BAD = """\
@nki.jit
def copied(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


@nki.jit
def kernel(x):
    return copied[2](x)  # NK610


inputs = (np.ones((128, 64), np.float32),)
"""

NK610_GOOD = """\
@nki.jit
def copied(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


@nki.jit
def kernel(x):
    return copied(x)


inputs = (np.ones((128, 64), np.float32),)
"""

NK611_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


inputs = (nl.zeros((128, 64), dtype=nl.float32, buffer=nl.sbuf),)  # NK611
"""

NK611_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


inputs = (np.zeros((128, 64), dtype=np.float32),)
"""

NK613_BAD = """\
@nki.jit
def copied(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


CHIP = "trn2"
kernel = copied[8]  # NK613
inputs = (np.ones((128, 64), np.float32),)
"""

NK613_GOOD = """\
@nki.jit
def copied(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.ds(nl.program_id(0) * 64, 64)
    nl.store(out[rows, :], nl.load(x[rows, :]))
    return out


CHIP = "trn2"
kernel = copied[2]
inputs = (np.ones((128, 64), np.float32),)
"""
