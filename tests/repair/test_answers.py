"""The answers about a wrong kernel: an edit where it was verified, and none where the reference may be wrong."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pytest

from nkitools.repair.answers import Answer, answer_of, bisect
from nkitools.repair.case import Case, NkiKernel
from nkitools.repair.search import Hunt, search
from nkitools.repair.trials import trials_of
from nkitools.why.targets import Expected
from nkitools.why.traced_calls import Call
from tests import cases
from tests.loading import loaded

pytestmark = pytest.mark.process

HEADER = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n"
LEGACY = "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\n\n"
X = np.random.default_rng(0).standard_normal((128, 48)).astype(np.float32)
POSITIVE = np.abs(X) + 0.5

MODERN_BODY = """
@nki.jit
def kernel(x):
    rows, columns = x.shape
    out = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    square = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=square, data1=tile, data2=tile, op=nl.multiply)
    nisa.tensor_reduce(dst=total, op=nl.add, data=square, axis=1)
    nisa.tensor_scalar(dst=total, data=total, op0=nl.multiply, operand0=1.0 / columns, op1=nl.add, operand1=0.25)
    nisa.activation(dst=total, op=nl.rsqrt, data=total)
    nisa.tensor_scalar(dst=square, data=tile, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=square)
    return out
"""
LEGACY_BODY = """
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 64 + nl.arange(64)[:, None], nl.arange(48)[None, :]])
        nl.store(out[i * 64 + nl.arange(64)[:, None], nl.arange(48)[None, :]], nl.add(nl.multiply(tile, tile), 0.5))
    return out
"""


def normed(x: Any) -> Any:
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 0.25)


def squared(x: Any) -> Any:
    return x * x + 0.5


def kernel_of(folder: Path, text: str) -> Any:
    """The kernel of a file of the author's."""
    file = folder / "author.py"
    file.write_text(text)
    return loaded(file, "author").kernel


MISTAKES = [
    ("operand1=0.25", "operand1=2.5"),
    ("1.0 / columns", "1.0 / (columns - 1)"),
    ("data=square, axis=1", "data=tile, axis=1"),
    ("op=nl.rsqrt", "op=nl.sqrt"),
    ("op0=nl.multiply, operand0=total)", "op0=nl.add, operand0=total)"),
    ("op=nl.add, data=square", "op=nl.maximum, data=square"),
]


@cases.each("right, wrong", MISTAKES)
def test_one_edit_mends_a_kernel(right: str, wrong: str, tmp_path: Path) -> None:
    """The mended kernel is the reference's on values and a shape that the search has not seen."""
    text = HEADER + MODERN_BODY.replace(right, wrong)
    found = bisect(kernel_of(tmp_path, text), POSITIVE, reference=normed, seconds=30)
    assert found.kind == "repaired", str(found)
    assert_mended(found, tmp_path, normed, np.abs(np.random.default_rng(5).standard_normal((64, 80))) + 0.1)


def assert_mended(found: Answer, folder: Path, reference: Any, x: Any) -> None:
    """Run the text after the edit; the author's file is as it was."""
    import nkitools

    assert found.trial is not None
    assert (folder / "author.py").read_text() == found.trial.part.source.text
    mended = kernel_of(folder, found.trial.text)
    x = x.astype(np.float32)
    np.testing.assert_allclose(nkitools.simulate(mended, x).outputs, reference(x), rtol=1e-4, atol=1e-5)


@pytest.mark.frameworks
def test_arrays_and_references_of_jax(tmp_path: Path) -> None:
    """The edits run in forks, which have none of JAX's threads: nothing there calls it."""
    jnp = pytest.importorskip("jax.numpy")

    def reference(x: Any) -> Any:
        return x / jnp.sqrt((x * x).mean(axis=1, keepdims=True) + 0.25)

    text = HEADER + MODERN_BODY.replace("operand1=0.25", "operand1=2.5")
    found = bisect(kernel_of(tmp_path, text), jnp.asarray(POSITIVE), reference=reference, seconds=30)
    assert found.kind == "repaired", str(found)
    assert_mended(found, tmp_path, normed, POSITIVE[:64])


@cases.each(
    "right, wrong",
    [
        ("nl.multiply(tile", "nl.maximum(tile"),
        ("nl.multiply(tile, tile)", "nl.add(tile, tile)"),
        ("range(2)", "range(1)"),
    ],
)
def test_the_legacy_dialect(right: str, wrong: str, tmp_path: Path) -> None:
    """The same, of a kernel that is compiled from its file's text."""
    text = LEGACY + LEGACY_BODY.replace(right, wrong)
    found = bisect(kernel_of(tmp_path, text), X, reference=squared, seconds=40)
    assert found.kind == "repaired", str(found)
    assert_mended(found, tmp_path, squared, np.random.default_rng(5).standard_normal((128, 48)))


def test_a_known_array_is_no_proof(tmp_path: Path) -> None:
    """With an array the edit fits this case, and the answer says that other values were not tried."""
    kernel = kernel_of(tmp_path, HEADER + MODERN_BODY.replace("op=nl.rsqrt", "op=nl.sqrt"))
    found = bisect(kernel, POSITIVE, reference=normed(POSITIVE), seconds=6)
    assert found.kind == "fits"
    assert "not verified on other values: no function says what is right" in str(found)


def doubled(x: Any) -> Any:
    return 2.0 * normed(x)


REFERENCES = [
    ("another_factor", doubled, "times 0.5"),
    ("other_places", lambda x: normed(x)[::-1], "other places"),
    ("slightly_other", lambda x: x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 0.2501), "off by little"),
]


@cases.each("name, reference, said", REFERENCES)
def test_a_wrong_reference_brings_no_edit(name: str, reference: Any, said: str, tmp_path: Path) -> None:
    """The kernel is right; the reference is so by one edit, or off by little."""
    found = bisect(kernel_of(tmp_path, HEADER + MODERN_BODY), POSITIVE, reference=reference, seconds=20)
    assert found.trial is None, str(found)
    assert found.kind in ("doubt", "not found")
    assert found.kind == "not found" or said in found.said


def test_a_coarser_dtype_is_no_remedy(tmp_path: Path) -> None:
    """The reference rounds to three digits, as an output in bfloat16 would: nothing is proposed for the kernel."""
    body = HEADER + MODERN_BODY

    def rounded(x: Any) -> Any:
        return np.round(normed(x), 2)

    found = bisect(kernel_of(tmp_path, body), POSITIVE, reference=rounded, seconds=8)
    assert found.trial is None, str(found)


SHARED = """
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=NUMBER)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def by_columns(x: Any) -> Any:
    return x / 48


def scaled(x: Any) -> Any:
    return x * 0.0123


@cases.each(
    "number, right, kind, change",
    [
        ("1 / 32", by_columns, "repaired", "32 -> 48"),
        ("0.031, op1=nl.add, operand1=1.0", lambda x: scaled(x) + 1, "repaired", "0.031 -> 0.0123"),
        ("0.031", scaled, "doubt", None),
    ],
)
def test_numbers_are_solved_for(number: str, right: Any, kind: str, change: str | None, tmp_path: Path) -> None:
    """Any number is found; a size of the arguments says which of two numbers is wrong, else both are named."""
    found = bisect(kernel_of(tmp_path, HEADER + SHARED.replace("NUMBER", number)), X, reference=right, seconds=20)
    assert (found.kind, None if found.trial is None else found.trial.change) == (kind, change), str(found)
    assert kind != "doubt" or ("0.031 -> 0.0123" in found.said and "0.0123 -> 0.031" in found.said)


def test_the_likelier_number_is_waited_for(tmp_path: Path) -> None:
    """One process alone finds ``1 -> 0.66667`` first; the answer is what two processes find."""
    kernel = kernel_of(tmp_path, HEADER + SHARED.replace("NUMBER", "1 / 32"))
    call = Call(kernel, (X,), {}, grid=None, chip=None, nki_version=None)
    found = answer_of(call, Expected(by_columns, {}, {}), 20, workers=1)
    assert found.trial is not None
    assert found.trial.change == "32 -> 48"


LINKED = """
@nki.jit
def kernel(x, total, weight):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile, scale, factor = nl.load(x), nl.load(total), nl.load(weight)
    nisa.reciprocal(dst=scale, data=scale)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=scale)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=factor, op=nl.multiply)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def test_an_argument_that_is_made_of_the_others(tmp_path: Path) -> None:
    """The reference ignores the sums of the rows, which other values would not fit: rows change places together."""
    kernel = kernel_of(tmp_path, HEADER + LINKED)
    given = POSITIVE, POSITIVE.sum(axis=1, keepdims=True), X
    found = bisect(kernel, *given, reference=lambda x, _, weight: x / x.sum(axis=1, keepdims=True) * weight, seconds=20)
    assert found.kind == "repaired", str(found)
    assert found.trial is not None
    assert found.trial.change == "nl.add -> nl.multiply"
    assert found.found is not None
    assert found.found.verified.on == ("rows in another order",)


def test_a_random_reference_is_noticed(tmp_path: Path) -> None:
    """It gives other results when it is called again; nothing is searched."""
    random = np.random.default_rng(1)
    kernel = kernel_of(tmp_path, HEADER + MODERN_BODY)
    found = bisect(kernel, POSITIVE, reference=lambda x: random.standard_normal(x.shape), seconds=5)
    assert (found.kind, found.result) == ("doubt", None)
    assert "it is random or keeps a state" in found.said


def test_a_reference_that_raises_on_other_values(tmp_path: Path) -> None:
    """The edit fits this case, and the answer names the exception."""

    def picky(x: Any) -> Any:
        if not np.array_equal(x, POSITIVE):
            raise KeyError("these values only")
        return normed(x)

    found = bisect(
        kernel_of(tmp_path, HEADER + MODERN_BODY.replace("rsqrt", "sqrt")), POSITIVE, reference=picky, seconds=6
    )
    assert found.kind == "fits"
    assert "the reference raises KeyError on other values" in str(found)
    with pytest.raises(ValueError, match="the reference raises KeyError"):
        bisect(kernel_of(tmp_path, HEADER + MODERN_BODY), X, reference=picky, seconds=1)


def test_two_mistakes_are_not_repaired(tmp_path: Path) -> None:
    """No single edit mends them, and none is named."""
    text = HEADER + MODERN_BODY.replace("op=nl.rsqrt", "op=nl.tanh").replace(
        "data2=tile, op=nl.multiply", "data2=tile, op=nl.add"
    )
    found = bisect(kernel_of(tmp_path, text), POSITIVE, reference=normed, seconds=30)
    assert (found.kind, found.trial) == ("not found", None)
    assert found.result is not None
    assert found.result.tried == len(found.result.trials)


WRITES = """    if columns != 48 or rows != 128:
        open(__file__ + ".written", "w").write("x")
    tile = nl.load(x)
    print("loud")
"""
LOUD = HEADER + MODERN_BODY.replace("    tile = nl.load(x)\n", WRITES).replace("op=nl.rsqrt", "op=nl.sqrt")


def test_edited_kernels_write_nothing_and_print_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A kernel that prints, and that writes a file at other shapes, does neither in the search."""
    found = bisect(kernel_of(tmp_path, LOUD), POSITIVE, reference=normed, seconds=20)
    assert found.trial is not None
    assert found.trial.change == "nl.sqrt -> nl.rsqrt"
    assert capfd.readouterr().out.count("loud") <= 6  # of the runs before the search, which are the author's kernel
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".written"] == []


MAGNITUDE = """
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.activation(dst=tile, op=nl.square, data=tile)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def test_edits_that_differ_on_values_of_no_test(tmp_path: Path) -> None:
    """On positive numbers several functions are right: the reference decides of which sign, and a case is asked for."""
    found = bisect(kernel_of(tmp_path, HEADER + MAGNITUDE), POSITIVE, reference=np.abs, seconds=20)
    assert found.kind == "repaired", str(found)
    assert found.trial is not None
    assert found.trial.change == "nl.square -> nl.abs"
    assert str(found).endswith(": that differs on values of the other sign; add this case")


MADE = """
import mmap
from scaling import scaled

def made(factor, steps):
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        spare = mmap.mmap(-1, 1 << 16)
        n = 0
        while n < steps:
            n += 1
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.OP, operand0=factor)
        scaled(tile)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
        nisa.dma_copy(dst=out, src=tile)
        return out
    return kernel

kernel = made(3.0, 2)
"""
SCALING = HEADER + "def scaled(tile):\n    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=NUMBER)\n"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Any]:
    """A kernel that a function makes, with a function of another file."""

    def kernel(op: str, number: str) -> Any:
        (tmp_path / "scaling.py").write_text(SCALING.replace("NUMBER", number))
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "scaling", raising=False)
        return kernel_of(tmp_path, HEADER + MADE.replace("OP", op))

    return kernel


@cases.each(
    "op, number, file, change",
    [("add", "2.0", "author.py", "nl.add -> nl.multiply"), ("multiply", "20.0", "scaling.py", "20.0 -> 2.0")],
)
def test_closures_and_other_files(op: str, number: str, file: str, change: str, made: Any) -> None:
    """A kernel that a function makes keeps its variables; the edit may be in the file of a function that it calls."""
    found = bisect(made(op, number), X, reference=lambda x: 6 * x + 1, seconds=20)
    assert found.trial is not None, str(found)
    assert (Path(found.trial.part.file).name, found.trial.change) == (file, change)


def test_a_method(tmp_path: Path) -> None:
    """A kernel may be a method of a class."""
    body = MODERN_BODY.replace("@nki.jit", "@staticmethod").replace("op=nl.rsqrt", "op=nl.sqrt")
    text = f"{HEADER}class Norms:\n{indent(body, '    ')}\n\nkernel = nki.jit(Norms.kernel)\n"
    found = bisect(kernel_of(tmp_path, text), POSITIVE, reference=normed, seconds=20)
    assert found.kind == "repaired", str(found)
    assert_mended(found, tmp_path, normed, POSITIVE[:64])


def test_edited_kernels_have_limits_of_time_and_memory(made: Any) -> None:
    """A loop without an end is stopped, and so is a kernel that asks for 4 GiB: neither of the two edits holds."""
    call = Call(made("multiply", "2.0"), (X,), {})
    case = Case(NkiKernel(call), ((X,), {}), [6 * X + 1])
    trials = [each for each in trials_of(case.kernel.parts()) if each.change in ("16 -> 32", "n += 1 -> n *= 1")]
    changes = {each.change for each in trials}
    began = time.monotonic()
    result = search(Hunt(case, trials, 0.01), 60, workers=1)
    assert (len(changes), result.tried, result.found) == (2, len(trials), [])
    assert time.monotonic() - began < 50
