"""Names that people invent: the remedy is the call that does it, and that call runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.facts.invented_names import meanings
from nkitools.suggestions.lint_interface import explained
from tests.loading import loaded

X = np.linspace(0.5, 2.0, 128 * 64, dtype=np.float32).reshape(128, 64)
_HEADS = {
    "legacy": "import numpy as np\nimport neuronxcc.nki as nki\nimport neuronxcc.nki.isa as nisa\n"
    "import neuronxcc.nki.language as nl\n",
    "modern": "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n",
}
# t, u: float32 tiles; k: an int32 one; r, c, q, p, s, m: tiles to write, a column, int32, PSUM, matmul operands.
_BODY = """

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    u = nl.load(x)
    k = nl.copy(t, dtype=nl.int32)
    r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    c = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    q = nl.ndarray((128, 64), dtype=nl.int32, buffer=nl.sbuf)
    p = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    s = nl.load(x[0:64, 0:64])
    m = nl.load(x[0:64, 0:64])
    {line}
    nl.store(out, t)
    return out
"""
_PLACES = {
    "dst": "r", "x": "t", "y": "u", "axis": "1", "dtype": "nl.bfloat16", "shape": "(128, 64)", "value": "0.5",
    "low": "0.0", "high": "1.0", "condition": "nl.greater(t, u)", "op": "nl.add", "n": "64", "ones": "u",
}  # fmt: skip
_INTEGERS = {"dst": "q", "x": "k", "y": "k"}
_COLUMN = {"dst": "c"}
# By the first name of a row: what its call takes, where that is another thing.
_OTHERS: dict[str, dict[str, str]] = {
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"), _INTEGERS),
    **dict.fromkeys(("sum", "max", "min", "prod", "reduce"), _COLUMN),
    "cdiv": {"x": "7", "y": "2"}, "iota": {"dst": "q"}, "load": {"x": "x"}, "load_transpose": {"x": "x"},
    "store": {"dst": "out"}, "dma": {"x": "x"},
    "load_register": {"x": "x[0:1, 0:1]"},
    "matmul": {"x": "s", "y": "m", "stationary": "s", "moving": "m", "dst": "p[:, 0:64]"},
    "reshape": {"shape": "(128, 8, 8)"}, "transpose": {"x": "u", "dst": "p"}, "unsqueeze": {"axis": "1"},
    "expand": {"x": "t[:, 0:1]"}, "range": {"n": "4"},
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str, str], Any]:
    """Run a line in a kernel of a dialect; returns the output."""

    def made(dialect: str, line: str) -> Any:
        path = tmp_path / f"invented_{dialect}.py"
        path.write_text(_HEADS[dialect] + _BODY.format(line=line))
        module = loaded(path)
        return nkitools.simulate(module.kernel, X).outputs

    return made


def _calls() -> Iterator[Any]:
    """Yield dialect and call of each row about a function."""
    for row in dict.fromkeys(each for name, each in meanings().items() if name[0] != "." and name[-1] != "="):
        places = {**_PLACES, **_OTHERS.get(row.names.split()[0], {})}
        calls = {row.call(places, into=into) for into in (False, True) if "{member}" not in row.value}
        if row.number:
            calls.add(row.call({**places, "y": "2"}, into=True, number=True))
        found = [("modern", each) for each in sorted(calls)]
        found += [("legacy", row.call({**places, "op": "np.add"}, into=False, legacy=True))] if calls else []
        yield from (pytest.param(*each, id="-".join(each)) for each in found if each[1])


@pytest.mark.parametrize(("dialect", "call"), list(_calls()))
def test_each_call_of_the_table_runs(dialect: str, call: str, run: Callable[[str, str], Any]) -> None:
    """A remedy that cannot be called would only lead from one error to the next."""
    np.testing.assert_array_equal(run(dialect, call), X)


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("y = nisa.multiply(t, 0.5)", "Write `nl.multiply(t, 0.5)`; with a destination `nisa.tensor_scalar(dst=..., "
         "data=t, op0=nl.multiply, operand0=0.5)`."),
        ("nisa.multiply(dst=r, data1=t, data2=u)",
         "Write `nisa.tensor_tensor(dst=r, data1=t, data2=u, op=nl.multiply)`."),
        ("nisa.multiply(dst=r, data=t, scalar=c)",
         "Write `nisa.tensor_scalar(dst=r, data=t, op0=nl.multiply, operand0=c)`."),
        ("nisa.scalar_mul(r, t, 0.5)", "Write `nisa.tensor_scalar(dst=r, data=t, op0=nl.multiply, operand0=0.5)`."),
        ("nisa.tensor_max(dst=r, data1=t, data2=u)",
         "Write `nisa.tensor_tensor(dst=r, data1=t, data2=u, op=nl.maximum)`."),
        ("nisa.max(dst=c, src=t)", "Write `nisa.tensor_reduce(dst=c, op=nl.maximum, data=t, axis=1)`."),
        ("nisa.exp(r, t)", "Write `nisa.activation(dst=r, op=nl.exp, data=t)`."),
        ("nisa.fill(r, 0.0)", "Write `nisa.memset(dst=r, value=0.0)`."),
        ("nl.dma_copy(dst=r, src=x)", "Write `nisa.dma_copy(dst=r, src=x)`."),
        ("nl.nc_matmul(p, s, m)", "Write `nisa.nc_matmul(p, s, m)`."),
        ("nisa.tensor_tensor_arith(dst=r, lhs=t, rhs=u, op=nl.add)",
         "Write `nisa.tensor_tensor(dst=r, data1=t, data2=u, op=nl.add)`."),
        ("nisa.tensor_scalar(dst=r, data=t, op0=nisa.multiply, operand0=2.0)", "Write `nl.multiply`."),
        ("nisa.activation(dst=r, op=nisa.ActFunc.Exp, data=t)", "Use one of the names"),
        ("nisa.activation(dst=r, op=nisa.activation_function.Exp, data=t)", "Write `nl.exp`."),
        ("nl.matmull(t, u)", "Did you mean matmul?"),
        ("nl.log3(t)", "Use one of the names"),
        ("nisa.copy_predicated(r, t, u)", "Write `nisa.tensor_copy_predicated(r, t, u)`."),
        ("nisa.select_range(r, t)", "Write `nisa.range_select(r, t, comp_op0=..., comp_op1=..., bound0=..."),
        ("nisa.tensor_partition(r, t)", "Use one of the names"),
        ("nisa.dma_copy(dst=r, scr=x)", "Write `src=` for `scr=`. The call form is nisa.dma_copy("),
        ("nl.sum(t, axis=1, keepdim=True)", "Write `keepdims=` for `keepdim=`. The call form is nl.sum("),
        ("nisa.nc_matmul(dst=p, stationary=s, moving=m, transpose_moving=True)",
         "nisa.nc_matmul takes `moving` as [K, N]"),
    ],
)  # fmt: skip
def test_the_remedy_has_the_arguments_of_the_line(line: str, remedy: str, run: Callable[[str, str], Any]) -> None:
    """The call to write stands there whole; a number or a column takes tensor_scalar; a guess by letters is none."""
    with pytest.raises(nkitools.KernelError) as caught:
        run("modern", line)
    assert caught.value.finding.remedy.startswith(remedy)
    assert caught.value.finding.rule in ("NK607", "NK609")


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("y = nl.cast(t, dtype=nl.bfloat16)", "Write `nl.copy(t, dtype=nl.bfloat16)`."),
        ("y = nisa.sum(t, axis=[1])", "Write `nl.sum(t, axis=[1], keepdims=True)`."),
        ("y = nisa.divide(t, u)", "Write `nl.divide(t, u)`."),
        ("y = nl.max(t, axis=1, keepdim=True)", "Write `keepdims=` for `keepdim=`."),
        ("y = nl.matmull(t, u)", "Did you mean matmul?"),
    ],
)
def test_the_remedy_of_the_legacy_dialect_returns_a_tile(
    line: str, remedy: str, run: Callable[[str, str], Any]
) -> None:
    """Legacy instructions have no destination."""
    with pytest.raises(nkitools.KernelError) as caught:
        run("legacy", line)
    assert caught.value.finding.remedy.startswith(remedy)


# Names that people call in public files and posts of 2024 to 2026, found by a search for calls that no NKI has (a few
# by looking for the names that other libraries have), and what their remedy must say.
SEARCHED = {
    "nisa.matmul": "nisa.nc_matmul(", "nisa.load": "nisa.dma_copy(", "nisa.store": "nisa.dma_copy(",
    "nisa.transpose": "nisa.nc_transpose(", "nl.tensor_copy": "nisa.tensor_copy(", "nl.array": "nl.ndarray(",
    "nl.load_and_transpose": "nl.load_transpose2d(", "nl.reduce_mean": "nl.mean(", "nl.shape": "x.shape",
    "nisa.sbuf_mod_alloc": "nl.ndarray(", "nl.as_tensor": "A Python number is passed as it is", "nl.cast": "nl.copy(",
    "nl.empty": "nl.ndarray(", "nl.arrange": "Index with slices", "nisa.add": "op=nl.add", "nl.concatenate": "slice",
    "nisa.tensor_sub": "op=nl.subtract", "nisa.tensor_mul": "op=nl.multiply", "nl.pow": "nl.power(",
    "nisa.reduce_max": "op=nl.maximum", "nisa.copy": "nisa.tensor_copy(", "nisa.gelu": "op=nl.gelu",
    "nisa.where": "nl.where(", "nisa.dma_load": "nisa.dma_copy(", "nl.argmax": "nisa.nc_find_index8",
    "nl.cumsum": "nisa.tensor_tensor_scan(", "nl.clamp": "nl.minimum(nl.maximum(", "nl.memset": "nisa.memset(",
    "nl.iota": "nisa.iota(", "nl.squeeze": "t.reshape(", "nl.astype": "nl.copy(", "nl.pad": "nl.zeros",
    # By a scan of clones, a year later: all of them stand in a public file.
    "nl.meshgrid": "nl.mgrid[", "nl.unravel_index": "i // columns", "nl.masked_load": "nisa.dma_copy(",
    "nl.masked_store": "nl.store(x[i, j], t, mask=", "nl.identity": "nl.shared_identity_matrix(",
    "nl.tensor_reduce": "nisa.tensor_reduce(", "nl.reduce": "nisa.tensor_reduce(", "nl.Tensor": "nl.NkiTensor",
    "nl.scan": "nisa.tensor_tensor_scan(", "nl.transpose_sbuf": "nisa.nc_transpose(",
    "nl.atomic_add": "nisa.dma_compute(", "nl.scalar": "A Python number is passed as it is",
    "nl.reshape": "x.reshape(shape)", "nl.dtype": "x.dtype", "nl.float64": "nl.float32", "nl.kernel": "@nki.jit",
    "nisa.zero": "nisa.memset(", "nisa.tensor_tensor_add": "op=nl.add", "nisa.silu": "op=nl.silu",
    "nisa.gather": "nl.gather_flattened(", "nisa.find_index8": "nisa.nc_find_index8(",
    "nisa.stream_shuffle": "nisa.nc_stream_shuffle(", "nisa.load_register": "nisa.register_alloc(",
    "nisa.store_register": "nisa.register_store(", "nisa.copy_predicated": "nisa.tensor_copy_predicated(",
    "nisa.tensor_scalar_bitvec": "nisa.tensor_scalar(", "nisa.tensor_tensor_power": "op=nl.power",
    "nisa.scalar_tensor_tensor_arith": "nisa.scalar_tensor_tensor(", "nisa.dma_copy_indirect": "vector_offset=i",
    "nisa.all_reduce": "nki.collectives.all_reduce(",
}  # fmt: skip


@pytest.mark.parametrize("name", SEARCHED)
def test_names_of_public_files_are_answered(name: str) -> None:
    """With the call that does it."""
    assert SEARCHED[name] in explained(name)


def test_a_tile_is_added_to_a_tensor(run: Callable[[str, str], Any]) -> None:
    """As the sentence about atomic additions says."""
    line = "nisa.dma_copy(dst=out, src=x); nisa.dma_compute(dst=out, srcs=[out, t], reduce_op=nl.add); t = nl.load(out)"
    assert "nisa.dma_compute(dst=out, srcs=[out, t], reduce_op=nl.add)" in explained("nl.atomic_add")
    np.testing.assert_array_equal(run("modern", line), X + X)


def test_names_are_explained_without_a_line() -> None:
    """Functions by any of their addresses, keywords by their ``=``; what nobody knows is not guessed."""
    assert explained("nisa.exp") == explained("nki.isa.exp") == explained("exp")
    assert explained("nisa.exp") == (
        "Write `nl.exp(x)`; with a destination `nisa.activation(dst=dst, op=nl.exp, data=x)`."
    )
    assert explained("neuronxcc.nki.isa.exp") == "Write `nl.exp(x)`."
    assert explained("scr=").startswith("Write the parameter that the function has: `src=`, `data=`")
    assert explained("transpose_moving=").startswith("nisa.nc_matmul takes `moving` as [K, N]")
    assert explained("nisa.frobnicate") == explained("frobnicate=") == ""
