from pathlib import Path

import numpy as np
import pytest

from nkitools.customop import load

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def my_ops():
    return load("my_ops", [HERE / "scale.cpp"], [HERE / "scale_shape.cpp"], multicore=True)


@pytest.mark.sim
@pytest.mark.parametrize("size", [8, 1001, 100_000])
def test_scale(my_ops, size):
    values = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    run = my_ops.scale.run(values, 2.5, order="reverse")
    assert run.findings == []
    assert np.array_equal(run.outputs, values * np.float32(2.5))
    assert run.prints["elements a core:"].values == [-(-size // 8)]
    assert sum(core.tcm_bytes_written for core in run.cores) == values.nbytes


@pytest.mark.sim
def test_scale_through_run_kernel(my_ops, run_kernel):
    assert np.array_equal(run_kernel(my_ops.scale, np.ones(5, np.float32), 3.0), np.full(5, 3))
