"""The three kinds of kernel print the same records where they print the same values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.customop import Operator
from nkitools.dialects.legacy import jit
from nkitools.dialects.legacy import language as lnl
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl

X = np.array([[0.1, -2.5, 3e7, np.inf]], np.float32)
SOURCE = r"""
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::zeros(t_in.sizes(), torch::kFloat);
  auto in = t_in.accessor<float, 2>();
  auto out = t_out.accessor<float, 2>();
  for (int i = 0; i < t_in.sizes()[1]; i++) {
    printf("x %f\n", in[0][i]);
    out[0][i] = in[0][i];
  }
  return t_out;
}
torch::Tensor shape(torch::Tensor t_in) { return torch::zeros(t_in.sizes(), torch::kFloat); }
"""


def by_nki(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for i in range(x.shape[1]):
        nl.device_print("x", tile[0:1, i : i + 1])
    nisa.dma_copy(dst=out, src=tile)
    return out


def by_pallas(x: Any) -> Any:
    import jax
    from jax.experimental import pallas as pl

    def kernel(x_ref: Any, out_ref: Any) -> None:
        for i in range(x_ref.shape[1]):
            jax.debug.print("x {}", x_ref[0, i])
        out_ref[...] = x_ref[...]

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def without_loops(prints: Any) -> list[Any]:
    """The records with what only NKI tells: the counters of its loops."""
    return [replace(one, loops={}) for one in prints]


def test_numbers_are_the_same_records(build_operators: Callable[..., dict[str, Operator]]) -> None:
    """Prefix, value, dtype and program agree, though NKI prints tiles of one element."""
    pytest.importorskip("jax")
    operator = build_operators({"shows": SOURCE})["shows"]
    of_nki = nkitools.simulate(by_nki, X).prints
    of_pallas = nkitools.pallas.check(by_pallas, X, modes=("interpret",)).prints
    of_operator = operator.run(X).prints
    assert [one.value.item() for one in of_operator] == X[0].tolist()
    assert without_loops(of_nki) == list(of_operator)
    assert without_loops(of_pallas) == list(of_operator)


def test_other_values_are_other_records() -> None:
    """One bit of one value, the prefix or the dtype makes them differ."""
    (one,) = nkitools.simulate(by_nki, X[:, :1]).prints
    (other,) = nkitools.simulate(by_nki, np.nextafter(X[:, :1], np.float32(1))).prints
    assert one != other


def test_tiles_are_the_same_records_in_both_dialects() -> None:
    """The legacy dialect prints what the modern one does."""

    def modern(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nl.device_print("x", tile)
        nisa.dma_copy(dst=out, src=tile)
        return out

    def legacy(x: Any) -> Any:
        out = lnl.ndarray(x.shape, dtype=x.dtype, buffer=lnl.shared_hbm)
        tile = lnl.load(x)
        lnl.device_print("x", tile)
        lnl.store(out, tile)
        return out

    assert nkitools.simulate(modern, X).prints == nkitools.simulate(jit(legacy), X).prints
