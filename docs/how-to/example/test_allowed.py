import nki
import nki.language as nl
import numpy as np
import pytest


@nki.jit
def remainder(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.mod(nl.load(x), 3.0))
    return out


@pytest.mark.nki_allow("NK615", reason="a reference that never runs on a device")
def test_remainder(run_kernel):
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(run_kernel(remainder, x), x % 3)
    assert run_kernel.run.findings == []


def test_in_one_call_only(run_kernel):
    run_kernel(remainder, np.ones((2, 4), np.float32), allow=("NK615",))
