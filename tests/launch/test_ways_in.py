"""AWS's ways in: a kernel called directly, nki.simulate, and the environment variables that AWS documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import language as nl
from tests.launch.kernels import doubled, doubled_in_place, halves

X = np.arange(512, dtype=np.float32).reshape(128, 4)

WAYS = {
    "kernel": lambda kernel: kernel,
    "kernel[1]": lambda kernel: kernel[1],
    "simulate": nki.simulate,
    "simulate of a launch": lambda kernel: nki.simulate(kernel[1]),
    "simulate of a simulated kernel": lambda kernel: nki.simulate(nki.simulate(kernel)),
    "simulate of a function": lambda kernel: nki.simulate(kernel.function),
}


@pytest.fixture(params=[None, "1"], ids=["unset", "NKI_SIMULATOR=1"])
def simulator(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS's switch for "every kernel runs on the simulator", on and not there."""
    monkeypatch.delenv("NKI_SIMULATOR", raising=False)
    if request.param is not None:
        monkeypatch.setenv("NKI_SIMULATOR", request.param)


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
class TestWays:
    """Each way in, whether NKI_SIMULATOR is set or not: without a device a kernel runs on the simulator anyway."""

    def test_numpy_in_numpy_out(self, way: Any) -> None:
        """By position and by keyword; what is written into an input is in it afterwards."""
        np.testing.assert_array_equal(way(doubled)(x=X), 2 * X)
        x = X.copy()
        assert way(doubled_in_place)(x) is x
        np.testing.assert_array_equal(x, 2 * X)

    @pytest.mark.frameworks
    def test_torch_in_torch_out(self, way: Any) -> None:
        """bfloat16 too (NKI 0.4: tensors need no conversion)."""
        torch = pytest.importorskip("torch")
        x = torch.ones((8, 4), dtype=torch.bfloat16)
        out = way(doubled)(x)
        assert out.dtype == torch.bfloat16
        assert torch.equal(out, 2 * x)
        assert way(doubled_in_place)(x) is x
        assert torch.equal(x, torch.full((8, 4), 2.0, dtype=torch.bfloat16))

    @pytest.mark.frameworks
    def test_jax_in_jax_out(self, way: Any) -> None:
        """Inputs cannot be written: that is refused, not lost."""
        jnp = pytest.importorskip("jax.numpy")
        x = jnp.ones((8, 4), jnp.bfloat16)
        out = way(doubled)(x)
        assert (type(out), out.dtype) == (type(x), x.dtype)
        assert bool((out == 2 * x).all())
        with pytest.raises(nkitools.KernelError, match="writes into its argument `x`, an array that is read-only"):
            way(doubled_in_place)(x)


def test_a_simulated_kernel_takes_a_grid_before_or_after() -> None:
    """`simulate(kernel[2])` and `simulate(kernel)[2]` are one."""
    expected = np.concatenate([X[:64], X[64:] + 10])
    for simulated in (nki.simulate(halves[2]), nki.simulate(halves)[2], nki.simulate(halves.function)[2]):
        np.testing.assert_array_equal(simulated(X), expected)
        assert simulated.__name__ == "halves"
    assert repr(nki.simulate(halves)[2]) == "<simulated <modern kernel halves[2]>>"
    with pytest.raises(nkitools.KernelError, match="halves is launched with"):
        nki.simulate(halves)[3]


def test_the_environment_says_which_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every way in, at each call: NEURON_PLATFORM_TARGET_OVERRIDE, else NKI_NC_VERSION, else trn2."""
    seen: list[int] = []
    kernel = nki.jit(lambda x: seen.append(nl.tile_size.sbuf_size_bytes // 128 // 1024) or x)
    simulated = nki.simulate(kernel)
    monkeypatch.delenv("NKI_NC_VERSION", raising=False)
    for platform in ("trn1", "gen3", "trn3"):
        monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", platform)
        kernel(X)
        simulated(X)
    monkeypatch.delenv("NEURON_PLATFORM_TARGET_OVERRIDE")
    monkeypatch.setenv("NKI_NC_VERSION", "gen4")
    kernel(X)
    assert seen == [192, 192, 224, 224, 256, 256, 256]


def test_a_kernel_without_arguments_runs() -> None:
    """There is no framework to be found among them: its results are NumPy's."""

    @nki.jit
    def kernel() -> Any:
        return nl.ones((4, 4), nl.float32, buffer=nl.shared_hbm)

    np.testing.assert_array_equal(kernel(), np.ones((4, 4)))
    np.testing.assert_array_equal(nki.simulate(kernel)(), np.ones((4, 4)))
