import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def first_row(x_hbm, spare_hbm, o_hbm, row):
    pltpu.sync_copy(x_hbm.at[pl.ds(0, 1), :], row)
    pltpu.sync_copy(row, o_hbm)


def kernel(x):
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    spare = jnp.ones((16, 128), jnp.float32)
    shape = jax.ShapeDtypeStruct((1, 256), jnp.float32)
    rows = [pltpu.VMEM((1, 256), jnp.float32)]
    call = pl.pallas_call(first_row, in_specs=[hbm, hbm], out_specs=hbm, scratch_shapes=rows, out_shape=shape)
    return call(x, spare)  # PL303


inputs = (jnp.ones((2, 256), jnp.float32),)
