"""`nki.jit` and `nki.simulate` in all their forms."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import legacy
from nkitools.dialects import modern as nki
from nkitools.dialects.legacy import language as legacy_nl
from nkitools.dialects.modern import language as nl

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def copied(x: Any) -> Any:
    """A copy of x."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    count = x.shape[0] // nl.num_programs()
    rows = nl.ds(nl.program_id() * count, count)
    nl.store(out[rows, :], nl.load(x[rows, :]))
    return out


@pytest.mark.parametrize(
    "decorate",
    [
        nki.jit,
        nki.jit(),
        nki.jit(mode="trace"),
        nki.jit(
            mode="auto",
            debug_kernel=True,
            show_compiler_tb=True,
            experimental_flags="skip-non-top-level-shared-hbm-check",
        ),
        lambda function: nki.jit(function, mode="jax", additional_compile_opt="", enable_out_of_bound_check=True),
        lambda function: nki.jit(nki.jit(function)),
        lambda function: nki.jit(mode="trace")(nki.jit(function)),
    ],
)
def test_every_form_of_jit_makes_a_kernel(decorate: Any) -> None:
    """Bare, with the compiler's keywords, twice."""
    kernel = decorate(copied)
    assert isinstance(kernel, nki.Kernel)
    assert kernel.func is copied
    assert (kernel.__name__, kernel.__doc__) == ("copied", "A copy of x.")
    np.testing.assert_array_equal(kernel(X), X)


def test_an_unknown_keyword_is_refused() -> None:
    """NK609 names it and those that there are, when the kernel is decorated."""
    with pytest.raises(TypeError, match=r"nki\.jit does not know optimize, turbo") as raised:
        nki.jit(copied, turbo=True, optimize=3, mode="auto")
    finding = raised.value.finding  # type: ignore[attr-defined]
    assert finding.rule == "NK609"
    assert "debug_kernel" in finding.remedy
    assert finding.file == __file__


def test_the_removed_keyword_is_reported_as_removed() -> None:
    """NK608: platform_target raises an error since NKI 0.3 (migration guide)."""
    with pytest.raises(nkitools.KernelError, match="NEURON_PLATFORM_TARGET_OVERRIDE") as raised:
        nki.jit(platform_target="trn2")
    assert raised.value.finding.rule == "NK608"


@pytest.mark.parametrize("wrong", [3, "kernel", X])
def test_what_is_no_function_is_refused(wrong: Any) -> None:
    """NK609 for jit and for simulate."""
    with pytest.raises(TypeError, match="decorates a function"):
        nki.jit(wrong)
    with pytest.raises(TypeError, match="takes a kernel"):
        nki.simulate(wrong)


@pytest.mark.parametrize("kernel", [copied, nki.jit(copied), nki.jit(copied)[2]])
def test_simulate_makes_a_callable_of_the_same_name(kernel: Any) -> None:
    """Of a plain function, a kernel, or a launch."""
    simulated = nki.simulate(kernel)
    np.testing.assert_array_equal(simulated(X), X)
    np.testing.assert_array_equal(simulated(x=X), X)
    assert (simulated.__name__, simulated.__doc__) == ("copied", "A copy of x.")


@pytest.mark.parametrize("kernel", [copied, nki.jit(copied), nki.jit(copied)[2]])
def test_the_simulator_that_scripts_import(kernel: Any) -> None:
    """`nki.simulator.simulate_kernel` takes positions and names apart, and the LNC degree; a wrong one is refused."""
    simulate_kernel = importlib.import_module("nki.simulator").simulate_kernel
    np.testing.assert_array_equal(simulate_kernel(kernel, (X,)), X)
    np.testing.assert_array_equal(simulate_kernel(kernel, (), {"x": X}, lnc=2), X)
    with pytest.raises(nkitools.KernelError, match="the LNC degree is 1 or 2"):
        simulate_kernel(kernel, (X,), {}, lnc=3)


@pytest.mark.parametrize("version", ["0.6", "0.7"])
def test_the_module_says_its_version(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """`nki.__version__` is the NKI version that is simulated; other names with underscores are missing as ever."""
    monkeypatch.setenv("NKITOOLS_NKI_VERSION", version)
    module = importlib.import_module("nki")
    assert module.__version__ == f"{version}.0"
    assert not hasattr(module, "__author__")


def test_kernels_may_be_defined_in_tests_and_closures() -> None:
    """They see what is around them."""
    factor = 3.0

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.multiply(nl.load(x), factor))
        return out

    np.testing.assert_array_equal(kernel(X), 3 * X)


def test_the_error_of_256_partitions_is_an_assertion_error() -> None:
    """As the simulator guide has it."""

    @nki.jit
    def bad_kernel(a: Any) -> Any:
        tile = nl.ndarray((256, 512), dtype=nl.float32, buffer=nl.sbuf)
        return nl.add(tile, tile)

    with pytest.raises(AssertionError, match="256 partitions"):
        nki.simulate(bad_kernel)(X)


def test_a_simulated_legacy_kernel_takes_a_launch_grid() -> None:
    """`nki.simulate(kernel)[grid]` of a kernel of neuronxcc.nki has as many programs as the grid says."""

    @legacy.jit
    def numbers(x: Any) -> Any:
        out = legacy_nl.ndarray((6, 1), dtype=x.dtype, buffer=legacy_nl.shared_hbm)
        number = legacy_nl.program_id(0)
        legacy_nl.store(out[number, 0], legacy_nl.load(x[number, 0]))
        return out

    x = np.arange(6, dtype=np.float32).reshape(6, 1)
    np.testing.assert_array_equal(nki.simulate(numbers)[6](x), x)
