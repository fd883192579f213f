"""Functions of `nki_op` and `wrap_nki` in simulation, where AWS's torch_neuronx is not here."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import nki  # noqa: E402 - torch decides whether this file is collected
import nki.language as nl  # noqa: E402

from nkitools.rules.finding import KernelError, NotModelled  # noqa: E402
from nkitools.targets.builtin import BuiltinSimulator  # noqa: E402
from nkitools.targets.packages import is_installed  # noqa: E402
from tests.fakes import machines  # noqa: E402

X = torch.arange(8, dtype=torch.float32).reshape(2, 4)


@nki.jit
def double(x: Any) -> Any:
    """2 x."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.add(tile, tile))
    return out


@nki.jit
def too_tall(x: Any) -> Any:
    """Break a limit."""
    tile = nl.ndarray((256, 4), dtype=x.dtype, buffer=nl.sbuf)
    nl.store(x, tile)
    return x


def registered(name: str, function: Any, **settings: Any) -> Any:
    from torch_neuronx import nki_op  # type: ignore[import-not-found]

    return nki_op(f"nkitools_tests::{name}", **settings)(function)


def test_an_operator_is_a_kernel_to_run() -> None:
    """Its outputs are those of the operator, and what it has called is the run; it is one of torch's operators."""

    def quadruple(x: torch.Tensor) -> torch.Tensor:
        return double(double(x))

    operator = registered("quadruple", quadruple, mutates_args={})
    run = BuiltinSimulator().run(operator, X)
    assert torch.equal(run.outputs, 4 * X)
    assert run.kernel == "double"
    assert len(run.instructions) > 0
    assert torch.equal(torch.ops.nkitools_tests.quadruple(X), 4 * X)


def test_the_options_of_a_run_reach_the_kernels_inside() -> None:
    """The chip and the level of rules; a grid is the matter of the call inside."""

    def tall(x: torch.Tensor) -> torch.Tensor:
        return too_tall(x)

    operator = registered("tall", tall, mutates_args={"x"})
    with pytest.raises(KernelError, match="NK101"):
        BuiltinSimulator().run(operator, X.clone())
    double_op = registered("plain", typed(double))
    assert BuiltinSimulator().run(double_op, X, chip="trn3").chip == "trn3"
    with pytest.raises(NotModelled, match="an operator of nki_op has no `grid`"):
        BuiltinSimulator().run(double_op, X, grid=2)


def typed(kernel: Any) -> Any:
    """A typed function: torch infers the schema of an operator from it."""

    def called(x: torch.Tensor) -> torch.Tensor:
        return kernel(x)

    return called


def test_an_operator_that_calls_no_kernel_is_none() -> None:
    """A library has taken its fallback: there is no run."""

    def plain(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    with pytest.raises(ValueError, match="operator plain has called no kernel of nki"):
        BuiltinSimulator().run(registered("fallback", plain), X)


def test_a_wrapped_kernel_is_the_kernel() -> None:
    """With a grid in brackets too; a plain function becomes a kernel."""
    from torch_neuronx.nki_hop import wrap_nki  # type: ignore[import-not-found]

    assert wrap_nki(double) is double
    assert torch.equal(BuiltinSimulator().run(wrap_nki(double)[2], X).outputs, 2 * X)
    assert torch.equal(wrap_nki(double.__wrapped__)(X), 2 * X)


def test_the_stand_in_is_seen_by_imports_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks whether torch_neuronx is installed finds that it is not; other names are refused by name."""
    import torch_neuronx

    monkeypatch.delitem(sys.modules, "torch_neuronx")
    is_installed.cache_clear()
    assert importlib.util.find_spec("torch_neuronx") is None
    assert not is_installed("torch_neuronx")
    with pytest.raises(AttributeError, match="has no `trace` here: nkitools stands in for torch_neuronx"):
        _ = torch_neuronx.trace


@pytest.mark.parametrize(("fake", "is_ours"), [("native", True), ("torch", False)])
def test_the_native_package_is_left_out_and_the_former_is_not(
    monkeypatch: pytest.MonkeyPatch, fake: str, is_ours: bool
) -> None:
    """The native one imports AWS's nki, where nkitools stands in; that of torch-xla does not."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch_neuronx"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(machines.FAKES / fake))
    import torch_neuronx

    assert hasattr(torch_neuronx, "nki_op") == is_ours
    assert (getattr(torch_neuronx, "__file__", None) is None) == is_ours
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch_neuronx"]:
        monkeypatch.delitem(sys.modules, name)
