import numpy as np
import pytest
from softmax import softmax

import nkitools


@pytest.fixture
def x():
    return np.linspace(-2, 2, 384 * 8, dtype=np.float32).reshape(384, 8)


def test_sums(run_kernel, device_prints, x):
    run_kernel(softmax, x)
    sums = device_prints["sums"]
    assert [one.loops for one in sums] == [{"t": 0}, {"t": 1}, {"t": 2}]
    np.testing.assert_allclose(np.concatenate(sums.values), np.exp(x).sum(axis=1, keepdims=True), rtol=1e-5)
    assert not any(one.nan_count or one.inf_count for one in sums)
    assert sums.where(t=1)[0].shape == (128, 1)


@pytest.mark.sim
def test_whole_structures():
    x = np.zeros((256, 4), np.float32)
    with nkitools.capture_prints() as prints:
        nkitools.simulate(softmax, x)
    fours = np.full((128, 1), 4, np.float32)
    assert prints == [nkitools.Print("sums", fours, loops={"t": t}) for t in range(2)]


@pytest.mark.sim
def test_watch(run_kernel, device_prints, x):
    run_kernel(softmax, x, watch={"exponentials": {"t": 2}, "softmax.py:11": "*"})
    (last,) = device_prints["exponentials"]
    np.testing.assert_allclose(last.value, np.exp(x[256:]), rtol=1e-6)
    assert len(device_prints["softmax.py:11"]) == 3
