import nki
import nki.language as nl
import numpy as np
from nki.compiler import CompileConfig


@nki.jit(compile_config=CompileConfig(non_ssa_legalization=True))  # NK621
def doubled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(nl.load(x), nl.load(x)))
    return out


CHIP = "trn2"
kernel = doubled
inputs = (np.ones((128, 64), np.float32),)
