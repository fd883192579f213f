import jax
from jax.experimental import pallas as pl


def _add_up(x_ref, sums_ref):
    sums_ref[...] += x_ref[...].sum(axis=0, keepdims=True)


def column_sums(x):
    rows, lanes = x.shape
    return pl.pallas_call(
        _add_up,
        out_shape=jax.ShapeDtypeStruct((1, lanes), x.dtype),
        grid=(rows // 4,),
        in_specs=[pl.BlockSpec((4, lanes), lambda block: (block, 0))],
        out_specs=pl.BlockSpec((1, lanes), lambda block: (0, 0)),
    )(x)
