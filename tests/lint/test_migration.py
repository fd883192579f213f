"""``nkitools lint --migrate`` and ``--fix``: from an older NKI to the newest one."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import nkitools
from nkitools.cli import main
from nkitools.facts import options, versions
from nkitools.lint.migration import migration
from nkitools.lint.rewriting import rewritten
from nkitools.rules.finding import Finding
from nkitools.suggestions.lint_interface import Dialects
from tests.dialects.modern.python_under_tracing.loops import LOOPS as PYTHON_LOOPS
from tests.dialects.modern.test_python_under_tracing import kernel_of
from tests.lint.linted import LEGACY, MODERN, findings, places
from tests.loading import loaded

OLD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros(x.shape, dtype=x.dtype)
    for part in nl.affine_range(2):
        columns = nl.ds(part * 32, 32)
        for i in nl.dynamic_range(1, 4):
            tile = nl.load(x[:, columns])
            nisa.tensor_tensor(dst=total[:, columns], data1=total[:, columns], data2=tile, op=nl.add,
                               engine=nisa.vector_engine)
    nl.store(out, total)
    return out
"""
NEW = OLD.replace("nl.affine_range", "range").replace("for i in nl.dynamic_range(1, 4):", "def i_body(i):")
NEW = NEW.replace("nisa.vector_engine)", "nisa.engine.vector)\n\n        nl.fori_loop(1, 4, i_body)")
X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
STAYS = {
    "a loop that is left": "for i in nl.dynamic_range(4):\n    break",
    "a loop that leaves a value": "n = 0\nfor i in nl.dynamic_range(4):\n    n = n + 1",
    "a counter that is used afterwards": "for i in nl.dynamic_range(4):\n    pass\nprint(i)",
    "a loop with an else": "for i in nl.dynamic_range(4):\n    pass\nelse:\n    pass",
}


# Each point of lint that NKI 0.7 changes: lines of a kernel, the rule at the line that has a comment `# here`, how the
# remedy begins, and what --fix makes of the marked line; None where it leaves the file alone.
POINTS: dict[str, tuple[str, str, str, str | None]] = {
    "affine_range": (
        "for i in nl.affine_range(4):  # here\n    f(x)",
        "NK618",
        "Write `for i in range(4):  # here`.",
        "for i in range(4):  # here",
    ),
    "sequential_range": (
        "for i in nl.sequential_range(1, 9, 2):  # here\n    f(x)",
        "NK618",
        "Write `for i in range(1, 9, 2):  # here`.",
        "for i in range(1, 9, 2):  # here",
    ),
    "static_range": (
        "tiles = [f(i) for i in nl.static_range(4)]  # here",
        "NK618",
        "Write `tiles = [f(i) for i in range(4)]  # here`.",
        "tiles = [f(i) for i in range(4)]  # here",
    ),
    "dynamic_range": (
        "for i in nl.dynamic_range(4):  # here\n    f(x)",
        "NK608",
        "Write `def i_body(i):  # here`, and behind the block `nl.fori_loop(0, 4, i_body)`.",
        "def i_body(i):  # here",
    ),
    "while of a register": (
        "more = nisa.register_alloc(3)\nwhile more:  # here\n    nisa.register_load(more, x)",
        "NK608",
        "Write `def more_body(_):  # here`, and behind the block `nl.while_loop(more, more_body)`.",
        "def more_body(_):  # here",
    ),
    "if of a register": ("more = nisa.register_alloc(3)\nif more > 1:  # here\n    f(x)", "NK602", "", None),
    "a register as a number": (
        "more = nisa.register_alloc(3)\nfor i in range(more):  # here\n    f(x)",
        "NK602",
        "",
        None,
    ),
    **{
        f"{name}_engine": (
            f"nisa.memset(x, 0, engine=nisa.{name}_engine)  # here",
            "NK618",
            f"Write `nisa.memset(x, 0, engine=nisa.engine.{name})  # here`.",
            f"nisa.memset(x, 0, engine=nisa.engine.{name})  # here",
        )
        for name in ("gpsimd", "scalar", "tensor", "unknown", "vector")
    },
    "VirtualRegister": ("made = nisa.VirtualRegister  # here", "NK618", "Use nisa.NkiScalar, which ", None),
    "a dependency without a kind": (
        "first = nisa.memset(x, 0)\nnisa.memset(x, 1).depends_on(first)  # here",
        "NK618",
        "Write `nisa.memset(x, 1).depends_on(first, kind=nisa.dependency.runtime)  # here`.",
        "nisa.memset(x, 1).depends_on(first, kind=nisa.dependency.runtime)  # here",
    ),
    "a body that changes Python's objects": (
        "seen = []\n\ndef body(i):\n    seen.append(i)  # here\n\nnl.fori_loop(0, 4, body)",
        "NK622",
        "",
        None,
    ),
    "topk without an order": (
        "nisa.topk(x, x, x, 64)  # here",
        "NK618",
        "Write `nisa.topk(x, x, x, 64, sorted=True)  # here`, where a kernel needs the order.",
        None,
    ),
    "topk over several lines": (
        "nisa.topk(  # here\n    x,\n    x,\n    x,\n    n=64,\n)",
        "NK618",
        "Write `n=64, sorted=True,`, where a kernel needs the order.",
        None,
    ),
}
SAME = {
    "topk with an order": "nisa.topk(x, x, x, 64, sorted=False)",
    "a dependency of a kind": "nisa.memset(x, 1).depends_on(x, kind=nisa.dependency.schedule)",
    "a while of the host": "n = 3\nwhile n:\n    n = n - 1",
}


@pytest.mark.parametrize("point", POINTS)
def test_each_point_has_its_line(point: str, tmp_path: Path) -> None:
    """``--migrate`` finds it at its line with what to write, and ``--fix`` writes what follows from the old text."""
    body, rule, remedy, fixed = POINTS[point]
    text = MODERN + "".join(f"    {line}".rstrip() + "\n" for line in body.splitlines())
    path = tmp_path / "old.py"
    path.write_text(text)
    marked = next(number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# here"))
    (found,) = [each for each in migration([path], Dialects()) if each.line == marked]
    assert found.rule == rule
    assert found.remedy.startswith(remedy)
    assert found.remedy
    changed = rewritten(text, "old.py")
    if fixed is None:
        assert changed == text
    else:
        assert changed.splitlines()[marked - 1].strip() == fixed
        path.write_text(changed)
        assert migration([path], Dialects()) == []


@pytest.mark.parametrize("form", SAME)
def test_what_both_versions_have_alike_is_no_point(form: str, tmp_path: Path) -> None:
    """Nothing is found, and nothing rewritten."""
    text = MODERN + "".join(f"    {line}\n" for line in SAME[form].splitlines())
    path = tmp_path / "new.py"
    path.write_text(text)
    assert migration([path], Dialects()) == []
    assert rewritten(text, "new.py") == text


def test_every_notice_of_a_name_has_a_point() -> None:
    """Names of the modern dialect that an NKI version deprecates or removes while the table has them."""
    newest = versions.language_of()
    rows = [row for row in versions.rows() if row.module.startswith("nki.") and row.is_modelled]
    leaving = {row.name for row in rows if row.is_announced(newest) or row.is_leaving(newest)}
    assert leaving >= {"affine_range", "dynamic_range", "VirtualRegister"}
    assert leaving <= POINTS.keys()


OBJECTS = """\
from dataclasses import dataclass

import nki
import nki.language as nl


class Plain(nl.NKIObject):
    size: int = 1


@dataclass
class Compared(nl.NKIObject):
    size: int = 1


class Own(nl.NKIObject):
    size: int = 1

    def __eq__(self, other):
        return self.size == other.size


@nki.jit
def kernel(x):
    return x if Plain() == Plain() else None
"""


def test_classes_whose_comparison_is_another_one(tmp_path: Path) -> None:
    """One without an ``__eq__``, in a file that compares objects."""
    path = tmp_path / "old.py"
    path.write_text(OBJECTS)
    (found,) = migration([path], Dialects())
    assert (found.rule, found.line, found.severity) == ("NK618", 7, "hint")
    assert found.remedy == "Write `@dataclass` above `class Plain`, or give the class an `__eq__`."
    path.write_text(OBJECTS.replace("Plain() == Plain()", "Plain().size"))
    assert migration([path], Dialects()) == []


def test_a_loop_of_a_register_that_is_rewritten_computes_the_same(tmp_path: Path) -> None:
    """It returns the register that its body has loaded: three turns."""
    old = PYTHON_LOOPS["while of a register"].source
    path = tmp_path / "new.py"
    path.write_text(rewritten(old, "old.py"))
    assert "nl.while_loop(more, more_body)" in path.read_text()
    np.testing.assert_array_equal(nkitools.simulate(kernel_of(path), X.copy(), nki_version="0.7").outputs, 3 * X)


def test_memories_as_texts(tmp_path: Path) -> None:
    """``buffer="sbuf"`` is refused in every version: ``--fix`` writes the memory itself."""
    text = MODERN + '    t = nl.ndarray((128, 4), nl.float32, buffer="sbuf")\n'
    assert rewritten(text, "old.py") == text.replace('"sbuf"', "nl.sbuf")


def test_what_is_rewritten() -> None:
    """Ranges, loops on the device and constants; a second time nothing is left."""
    assert rewritten(OLD, "old.py") == NEW
    assert rewritten(NEW, "new.py") == NEW


def test_loops_in_loops() -> None:
    """The inner one ends first."""
    text = MODERN + "    for i in nl.dynamic_range(2):\n        for j in nl.dynamic_range(3):\n            f(x)\n"
    body = rewritten(text, "old.py").removeprefix(MODERN)
    expected = "def i_body(i): def j_body(j): f(x) nl.fori_loop(0, 3, j_body) nl.fori_loop(0, 2, i_body)"
    assert " ".join(body.split()) == expected


def test_the_rewritten_kernel_computes_the_same(tmp_path: Path) -> None:
    """Three times x, under 0.7 too; there is nothing to find any more."""
    path = tmp_path / "new.py"
    path.write_text(rewritten(OLD, "old.py"))
    np.testing.assert_array_equal(nkitools.simulate(kernel_of(path), X.copy(), nki_version="0.7").outputs, 3 * X)
    with options.override(nki_version="0.7"):
        assert findings(path) == []
    assert migration([path], Dialects()) == []


@pytest.mark.parametrize("body", STAYS.values(), ids=STAYS)
def test_a_loop_whose_body_is_no_function_stays(body: str) -> None:
    """Its state would not go on from turn to turn."""
    text = MODERN + "".join(f"    {line}\n" for line in body.splitlines())
    assert rewritten(text, "old.py") == text


def test_each_line_comes_with_the_line_to_write(tmp_path: Path) -> None:
    """Those that 0.7 changes, and no finding that every version has."""
    path = tmp_path / "old.py"
    path.write_text(OLD + "\n\n@nki.jit\ndef wrong(x):\n    nl.lod(x)\n")
    found = migration([path], Dialects())
    assert places(found) == [("NK618", 10, 17), ("NK608", 12, 18), ("NK618", 15, 39)]
    assert found[0].remedy == "Write `for part in range(2):`."
    assert found[1].remedy == "Write `def i_body(i):`, and behind the block `nl.fori_loop(1, 4, i_body)`."
    assert found[2].remedy == "Write `engine=nisa.engine.vector)`."


def test_a_legacy_file_is_compared_with_the_modern_dialect(tmp_path: Path) -> None:
    """Its imports, and the names that only the legacy dialect has."""
    path = tmp_path / "old.py"
    path.write_text(LEGACY + "    i = nl.arange(128)\n")
    found = migration([path], Dialects())
    assert [(each.rule, each.line) for each in found] == [("NK608", 1), ("NK608", 2), ("NK608", 3), ("NK608", 8)]
    assert found[0].remedy == "Write `import nki`."


def test_the_command(tmp_path: Path) -> None:
    """``--migrate`` shows what to write, ``--fix`` writes it."""
    path = tmp_path / "old.py"
    path.write_text(OLD)
    shown = CliRunner().invoke(main, ["lint", "--migrate", str(path)])
    assert "Write `for part in range(2):`." in shown.output.replace("\n", " ")
    assert path.read_text() == OLD
    CliRunner().invoke(main, ["lint", "--fix", str(path)])
    assert path.read_text() == NEW


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("from nki.collectives import all_redoce", "NK607"),
        ("from nki.compiler import enable_stack_allocator", "NK608"),
        ("from nki.compiler import CompileConfiguration", "NK607"),
    ],
)
def test_names_of_the_smaller_modules(line: str, rule: str, tmp_path: Path) -> None:
    """An imported name of nki.collectives and of nki.compiler must be there."""
    path = tmp_path / "kernel.py"
    path.write_text(f"{line}\n{MODERN}    pass\n")
    assert [(each.rule, each.line) for each in findings(path)] == [(rule, 1)]


def test_names_of_collectives_in_a_kernel(tmp_path: Path) -> None:
    """A misspelt one is found at its call."""
    path = tmp_path / "kernel.py"
    path.write_text(f"import nki.collectives as ncc\n{MODERN}    ncc.all_redoce(x)\n    ncc.rank_id()\n")
    assert [(each.rule, each.line) for each in findings(path)] == [("NK607", 9)]


HARNESS = """from neuronxcc import nki
import neuronxcc.nki as own
from neuronxcc.nki import baremetal, jit
from neuronxcc.nki import profile


@own.benchmark(warmup=1)
@jit
def kernel(x):
    return x


print(nki.baremetal()(kernel), own.simulate_kernel(kernel))
"""


def test_the_legacy_harness_is_named_with_what_replaces_it(tmp_path: Path) -> None:
    """Each line that is named gets another line, or what to call; no import is told to stay as it is."""
    path = tmp_path / "harness.py"
    path.write_text(HARNESS)
    found = {(each.line, each.message.split()[0].rstrip(":")): each.remedy for each in migration([path], Dialects())}
    assert found[1, "neuronxcc.nki"] == "Write `import nki`."
    assert found[2, "neuronxcc.nki"] == "Write `import nki as own`."
    assert found[3, "neuronxcc.nki.baremetal"].startswith("Write `from nki import jit`: baremetal is gone.")
    assert found[4, "neuronxcc.nki.profile"].startswith("Leave the line out: profile is gone.")
    assert found[7, "nki.benchmark"].startswith("Write `@nki.jit`. Call the kernel itself")
    assert found[13, "nki.baremetal"].startswith("Write `print(kernel, nki.simulate(kernel)())`. Call the kernel")
    assert found[13, "nki.simulate_kernel"] == "Write `print(kernel, nki.simulate(kernel)())`."
    lines = HARNESS.splitlines()
    assert [line for (line, _), remedy in found.items() if remedy == f"Write `{lines[line - 1].strip()}`."] == []


# Statements of a legacy kernel, each with what its last line becomes; a guess has what it supposes behind a "?".
T = "t = nl.load(x)\n    "
ROW, COLUMN = "i = nl.arange(128)[:, None]\n    ", "j = nl.arange(64)[None, :]\n    "
LEGACY_LINES = {
    "out = nl.ndarray((nl.par_dim(128), 64), dtype=x.dtype)": "out = nl.ndarray((128, 64), dtype=x.dtype)",
    "out = nl.ndarray((4, nl.par_dim(128), 64), dtype=x.dtype)":
        "out = [nl.ndarray((128, 64), dtype=x.dtype) for _ in range(4)] ? each `[i, ...]` of these tiles becomes",
    "out = nl.ndarray((4, nl.par_dim(128), 64), dtype=x.dtype)\n    y = nl.exp(out[2, :, :])":
        "y = nl.exp(out[2][:, :])",
    "for i in nl.affine_range(4):\n        pass": "for i in range(4):",
    f"{T}y = t * 2": "y = nl.multiply(t, 2)",
    f"{T}y = nl.where(t > 0, t, 0)": "y = nl.where(nl.greater(t, 0), t, 0)",
    f"{T}y = t / 2": "y = nl.multiply(t, 1 / 2)",
    f"{T}y = t / x.shape[1]": "y = nl.multiply(t, 1 / x.shape[1])",
    f"{T}y = 2 * t - t * t": "y = nl.subtract(nl.multiply(2, t), nl.multiply(t, t))",
    f"{T}y = t / nl.exp(t)": "y = nl.multiply(t, nl.reciprocal(nl.exp(t)))",
    f"{T}y = t / other": "y = nl.multiply(t, nl.reciprocal(other)) ? `other` is a tile; if it is a number write",
    f"{T}t += 1": "t = nl.add(t, 1)",
    f"{T}y = -t": "y = nl.negative(t)",
    "i = nl.arange(128)[:, None]": "i = nl.ds(0, 128)",
    "i = nl.arange(32, 64)[:, None]": "i = nl.ds(32, 32)",
    "i, j = nl.mgrid[0:128, 0:n]": "i, j = (nl.ds(0, 128), nl.ds(0, n))",
    "g = nl.mgrid[0:128, 0:64]\n    y = nl.load(x[g.p, 64 + g.x])": "y = nl.load(x[0:128, nl.ds(64, 64)])",
    f"{ROW}{COLUMN}y = nl.load(x[m * 128 + i, j])": "y = nl.load(x[nl.ds(m * 128, 128), j])",
    f"{ROW}{COLUMN}rows = m * 128 + i": "rows = nl.ds(m * 128, 128)",
    f"{T}{ROW}{COLUMN}y = nl.exp(t[i, 2 * j + 1])": "y = nl.exp(t[i, 1:128:2])",
    f"{ROW}{COLUMN}y = nl.load(x[m * 128 + i, j], mask=m * 128 + i < n)":
        "y = nl.load(x[nl.ds(m * 128, min(128, n - m * 128)), j])",
    f"{ROW}{COLUMN}inside = (i < n) & (j <= 9)": "",
    f"{ROW}{COLUMN}inside = (i < n) & (j <= 9)\n    y = nl.load(x[i, j], mask=inside)":
        "y = nl.load(x[0:min(128, n), 0:min(64, 10)])",
    f"{T}{ROW}{COLUMN}nl.store(x[m * 128 + i, j], t, mask=m * 128 + i < n)":
        "nl.store(x[nl.ds(m * 128, min(128, n - m * 128)), j], t[0:min(128, n - m * 128), 0:64])",
    f"{T}y = nl.exp(t, mask=given)": "y = nl.exp(t) ? `given` leaves the elements that the slices name",
    f"{T}{COLUMN}y = nl.exp(t[nl.arange(4)[:, None], 2 * nl.arange(8)[None, :] + j])":
        "y = nl.exp(t[0:4, :]) ? `2 * nl.arange(8)[None, :] + j` goes along several axes",
    f"{T}y = nisa.activation(nl.exp, t)": "nisa.activation(dst=y, op=nl.exp, data=t)",
    f"{T}t = nisa.activation(nl.exp, t)": "nisa.activation(dst=t, op=nl.exp, data=t)",
    f"{T}y = nisa.tensor_scalar(t, np.max, 0.5, dtype=nl.bfloat16)":
        "nisa.tensor_scalar(dst=y, data=t, op0=nl.maximum, operand0=0.5)",
    f"{T}y = nl.copy(nisa.nc_transpose(t))": "y = nl.copy(nc_transpose_tile)",
    f"{T}y = nl.sum(t, axis=1)": "y = nl.sum(t, axis=1, keepdims=True)",
    f"{T}y = t.broadcast_to((128, 64))": "y = nl.broadcast_to(t, (128, 64))",
    "y = nisa.memset((128, 4), value=0, dtype=nl.int32)": "y = nl.full((128, 4), 0, dtype=nl.int32)",
    "y = nl.full((128, 4), nl.fp32.min, dtype=nl.float32)":
        "y = nl.full((128, 4), -3.4028234663852886e+38, dtype=nl.float32)",
    f"{T}t[0:4, :] = nl.exp(t[4:8, :])": "nisa.tensor_copy(dst=t[0:4, :], src=nl.exp(t[4:8, :]))",
    f"{T}t[0:4, :] = 0": "nisa.memset(dst=t[0:4, :], value=0)",
    f"{T}t[0:4, :] = nl.load(x[0:4, :])": "nisa.dma_copy(dst=t[0:4, :], src=x[0:4, :])",
}  # fmt: skip
HARNESS_LINES = {
    "@nki.baremetal\ndef f(x):\n    pass": "@nki.jit",
    "@nki.benchmark(warmup=5, iters=10)\ndef f(x):\n    pass": "@nki.jit",
    "@nki.jit(mode='simulation')\ndef f(x):\n    pass": "@nki.jit",
    "nki.baremetal()(kernel)(x)": "kernel(x)",
    "measured = nki.benchmark(warmup=5)(kernel)": "measured = kernel",
    "measured = nki.benchmark(kernel, warmup=5)": "measured = kernel",
    "nki.simulate_kernel(kernel, x, y=1)": "nki.simulate(kernel)(x, y=1)",
}


def _last_written(path: Path, line: int) -> str:
    """What the remedy at a line, or at one of the statement's, writes for its statement; a guess with a "?"."""
    found = [each for each in migration([path], Dialects()) if each.line >= line]
    assert found
    (remedy,) = {each.remedy for each in found if each.line == found[0].line}
    said, _, guess = remedy.partition(" That is a guess: ")
    written = said.partition("Write `")[2].split("`. ")[0].removesuffix("`.").split("`, then `")[-1]
    return f"{written} ? {guess}" if guess else written


@pytest.mark.parametrize("old", [*LEGACY_LINES, *HARNESS_LINES])
def test_a_legacy_line_gets_the_modern_one(old: str, tmp_path: Path) -> None:
    """Harness, ranges, indices, masks, operators, instructions with dst; a guess says what it supposes."""
    if old in LEGACY_LINES:
        text, new = f"import numpy as np\n{LEGACY}    {old}\n", LEGACY_LINES[old]
    else:
        text, new = f"{LEGACY}    pass\n\n\n{old}\n", HARNESS_LINES[old]
    path = tmp_path / "old.py"
    path.write_text(text)
    last = old.rpartition("\n    ")[2] if not old.endswith("pass") else old
    written = _last_written(path, text.count("\n", 0, text.rindex(last)) + 1)
    assert written == new if "?" not in new else written.startswith(new)


KERNELS = sorted((Path(__file__).parent / "legacy_kernels").glob("*.py"))


def _followed(text: str, found: list[Finding]) -> str:
    """The text of a legacy file in which each remedy was followed to the letter."""
    lines = text.splitlines()
    places = [(each.lineno, each.end_lineno or 0) for each in ast.walk(ast.parse(text)) if isinstance(each, ast.stmt)]
    written: dict[tuple[int, int], list[str]] = {}
    for each in found:
        assert each.remedy.startswith(("Write `", "Leave the line out.")), each
        said = each.remedy.partition(" That is a guess")[0].partition("Write `")[2].split("`. ")[0].removesuffix("`.")
        whole = [place for place in places if place[0] == each.line and not lines[place[0] - 1].endswith(":")]
        written[whole[0] if whole else (each.line, each.line)] = said.split("`, then `") if said else []
    for (first, last), new in sorted(written.items(), reverse=True):
        old = lines[first - 1]
        lines[first - 1 : last] = [" " * (len(old) - len(old.lstrip())) + each for each in new]
    return "\n".join(lines)


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_a_kernel_of_which_each_line_was_followed_computes_the_same(path: Path, tmp_path: Path) -> None:
    """Written to the letter the lines make a modern kernel, which runs without an error."""
    new = tmp_path / f"{path.stem}_new.py"
    new.write_text(_followed(path.read_text(), migration([path], Dialects())))
    old, modern = (loaded(each) for each in (path, new))
    expected = nkitools.simulate(old.kernel, *old.inputs).outputs
    run = nkitools.simulate(modern.kernel, *modern.inputs, nki_version="0.7")
    np.testing.assert_allclose(run.outputs, expected, rtol=1e-5, atol=1e-6)
