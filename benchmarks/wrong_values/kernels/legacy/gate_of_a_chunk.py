"""The correction of an output by a gate for a chunk of tokens that begins at an offset. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

SIZE = 24


@nki.jit
def kernel(output, receptance, key, gate, offset):
    whole = output.shape[0]
    tokens = whole - offset
    out = nl.ndarray((tokens, SIZE), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(SIZE)[None, :]
    for block in nl.affine_range((tokens + 127) // 128):
        local = block * 128 + i_p
        place = offset + local
        inside = local < tokens
        counted = place < tokens
        base = nl.zeros((nl.par_dim(128), SIZE), dtype=nl.float32, buffer=nl.sbuf)
        factor = nl.zeros((nl.par_dim(128), SIZE), dtype=nl.float32, buffer=nl.sbuf)
        base[i_p, i_f] = nl.load(output[place, i_f], mask=counted)
        factor[i_p, i_f] = nl.load(gate[place, i_f], mask=counted)
        asked = nl.load(receptance[place, i_f], mask=inside)
        keys = nl.load(key[place, i_f], mask=inside)
        product = nl.multiply(asked, keys, mask=inside)
        share = nl.sum(product, axis=1, keepdims=True, mask=inside)
        corrected = nl.add(base, share, mask=inside)
        result = nl.multiply(corrected, factor, mask=inside)
        nl.store(out[local, i_f], result, mask=inside)
    return out


def reference(output, receptance, key, gate, offset):
    share = (receptance * key).sum(axis=1, keepdims=True)
    return ((output + share) * gate)[offset:]


def inputs(tokens, offset, seed=0):
    rng = np.random.default_rng(seed)
    arrays = rng.standard_normal((4, tokens + offset, SIZE)).astype(np.float32)
    return (*arrays, offset)


space = {"tokens": [140, 60], "offset": [16, 10]}
tolerance = (1e-3, 1e-4)
