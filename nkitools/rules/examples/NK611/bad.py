import nki
import nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


inputs = (nl.zeros((128, 64), dtype=nl.float32, buffer=nl.sbuf),)  # NK611
