"""An edited function runs in the place of the author's, in both dialects, and the author's file runs once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.edits.candidates import candidates_in
from nkitools.edits.in_place import in_place
from nkitools.edits.source import Source
from tests.loading import loaded

MODERN = """import nki
import nki.isa as nisa
import nki.language as nl

with open(__file__ + ".runs", "a") as runs:
    runs.write("once ")


def summed(a, b):
    total = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=a, data2=b, op=nl.add)
    return total


@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, summed(nl.load(x), nl.load(y)))
    return out
"""
LEGACY = """import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

with open(__file__ + ".runs", "a") as runs:
    runs.write("once ")


def summed(a, b):
    return nl.add(a, b)


@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(1):
        nl.store(out, summed(nl.load(x), nl.load(y)))
    return out
"""


def module_of(folder: Path, text: str) -> Any:
    """Execute a file of the author's."""
    file = folder / "author.py"
    file.write_text(text)
    return loaded(file, "author")


@pytest.mark.parametrize("text", [MODERN, LEGACY], ids=["modern", "legacy"])
def test_an_edited_helper_runs_while_the_block_does(text: str, tmp_path: Path) -> None:
    """The difference in the block, the sum before and after it and after an error; the module is executed once."""
    module = module_of(tmp_path, text)
    x, y = np.full((4, 8), 5, np.float32), np.full((4, 8), 3, np.float32)
    found = candidates_in(Source(text, "author"), "kernel", ["change-operator"])
    (edit,) = [each for each in found if each.edit.text == "nl.subtract"]
    assert (nkitools.simulate(module.kernel, x, y).outputs == 8).all()
    for _ in range(2):
        with in_place(module.summed, edit.text):
            assert (nkitools.simulate(module.kernel, x, y).outputs == 2).all()
        assert (nkitools.simulate(module.kernel, x, y).outputs == 8).all()
    with pytest.raises(KeyError), in_place(module.summed, edit.text):
        raise KeyError
    assert (nkitools.simulate(module.kernel, x, y).outputs == 8).all()
    assert (tmp_path / "author.py.runs").read_text() == "once "
    assert (tmp_path / "author.py").read_text() == text


@pytest.mark.parametrize("text", [MODERN, LEGACY], ids=["modern", "legacy"])
def test_an_edited_kernel_runs_and_its_findings_name_the_edited_line(text: str, tmp_path: Path) -> None:
    """A store that is left out is an output that is never written, in the kernel object that the author has."""
    module = module_of(tmp_path, text)
    x = np.ones((4, 8), np.float32)
    found = candidates_in(Source(text, "author"), "kernel", ["drop-copy"])
    (edit,) = [each for each in found if each.old.startswith("nl.store")]
    with in_place(module.kernel.function, edit.text):
        run = nkitools.simulate(module.kernel, x, x, rules="report")
    assert "NK403" in {each.rule for each in run.findings}
    assert nkitools.simulate(module.kernel, x, x, rules="report").findings == []


CLOSURES = """def made(factor, offset):
    def scaled(x):
        return x * factor

    return scaled


def other():
    return 1
"""


def test_closures_keep_their_variables(tmp_path: Path) -> None:
    """An edit that uses the same variables runs with their values; one that needs others is refused."""
    scaled = module_of(tmp_path, CLOSURES).made(3, 10)
    with in_place(scaled, CLOSURES.replace("x * factor", "x - factor")):
        assert scaled(5) == 2
    assert scaled(5) == 15
    with (
        pytest.raises(ValueError, match="the edit changes which variables"),
        in_place(scaled, CLOSURES.replace("x * factor", "x * offset")),
    ):
        pass


def test_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    """Its text is another program's, so that no place in it is one of the function."""
    other = module_of(tmp_path, CLOSURES).other
    (tmp_path / "author.py").write_text(CLOSURES.replace("return 1", "return 1 + 1"))
    with pytest.raises(ValueError, match="does not hold other as it runs"), in_place(other, CLOSURES):
        pass


PALLAS = """import jax
from jax.experimental import pallas as pl


def body(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def add(x, y):
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y)
"""


def test_a_pallas_kernel_is_traced_again(tmp_path: Path) -> None:
    """JAX keeps what it has traced of a function, and runs the edited body all the same, and then the author's."""
    pytest.importorskip("jax")
    module = module_of(tmp_path, PALLAS)
    x, y = np.full((8, 128), 5, np.float32), np.full((8, 128), 3, np.float32)
    assert (nkitools.pallas.run(module.add, x, y).outputs == 8).all()
    with in_place(module.body, PALLAS.replace("] + y", "] - y")):
        assert (nkitools.pallas.run(module.add, x, y).outputs == 2).all()
    assert (nkitools.pallas.run(module.add, x, y).outputs == 8).all()
