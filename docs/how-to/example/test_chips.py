import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools


@nki.jit
def wide_product(a, b):
    out = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    moving = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf)
    product = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    result = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=stationary, src=a)
    nisa.dma_copy(dst=moving, src=b)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


@pytest.fixture
def operands():
    random = np.random.default_rng(0)
    return random.random((128, 128), dtype=np.float32), random.random((128, 1024), dtype=np.float32)


@pytest.mark.sim
def test_trn3_takes_it(operands):
    a, b = operands
    run = nkitools.simulate(wide_product, a, b, chip="trn3")
    np.testing.assert_allclose(run.outputs, a.T @ b, rtol=1e-5)


@pytest.mark.sim
@pytest.mark.parametrize("chip", ["trn1", "trn2"])
def test_older_chips_refuse_it(operands, chip):
    with nkitools.expect_finding("NK105", line="nisa.nc_matmul("):
        nkitools.simulate(wide_product, *operands, chip=chip)
