import nki
import nki.language as nl

seen = {}


def remember(name, scale):
    seen[name] = scale


@nki.jit
def scaled(x, name, *, fast=True):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    names = {"twice", "half"}
    if name in names and fast is not None:
        nl.store(out, nl.multiply(nl.load(x), seen[name]))
    return out
