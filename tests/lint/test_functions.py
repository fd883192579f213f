"""The source rules of kernels that run: `simulate` reports what only their source shows, before they run."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.authors_code.called_functions import plain_function
from nkitools.lint.functions import source_findings

pytestmark = pytest.mark.usefixtures("parsed")

HEAD = """\
import functools

import nki
import nki.isa as nisa
import nki.language as nl


"""
COPY = """\
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out
"""
X = np.ones((4, 4), np.float32)
Load = Callable[..., Any]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Imports a module made of files; the first is its own, others lie beside it."""
    nkitools.install_stand_in(prefer="builtin")
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def imported(source: str, **others: str) -> Any:
        for name, text in {"linted_kernels": HEAD + source, **others}.items():
            (tmp_path / f"{name}.py").write_text(text)
        invalidate_caches()
        return import_module("linted_kernels")

    yield imported
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def lines(function: Any) -> list[tuple[str, int]]:
    return [(each.rule, each.line - HEAD.count("\n")) for each in source_findings(function)]


def test_an_error_is_raised_before_the_run(load: Load) -> None:
    """Under rules="error"; nothing has been issued, and the finding names the author's place."""
    module = load(f"@nki.jit\ndef kernel(x):\n    names = {{1}}\n{COPY}")
    with nkitools.collect_runs() as runs, pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(module.kernel, X)
    found = raised.value.finding
    assert (found.rule, found.file, found.line, found.column) == ("NK601", module.__file__, HEAD.count("\n") + 3, 13)
    assert found.function == "kernel"
    assert len(runs[0].instructions) == 0


def test_a_report_goes_on(load: Load) -> None:
    """Under rules="report" the result is there, and the finding comes once a run; under "off" nothing is said."""
    module = load(f"@nki.jit\ndef kernel(x):\n    names = {{1}}\n{COPY}")
    for _ in range(2):
        run = nkitools.simulate(module.kernel, X, rules="report")
        assert [each.rule for each in run.findings] == ["NK601"]
        np.testing.assert_array_equal(run.outputs, X)
    assert nkitools.simulate(module.kernel, X, rules="off").findings == []


def test_hints_are_for_lint(load: Load) -> None:
    """A run does not repeat what is only not documented."""
    module = load(f"@nki.jit\ndef kernel(x):\n    sizes = tuple(n for n in x.shape if x is not None)\n{COPY}")
    assert nkitools.simulate(module.kernel, X).findings == []


def test_what_a_run_shows_it_shows_alone(load: Load) -> None:
    """One cause, one finding: an operator on a tensor is told by the run."""
    module = load(f"@nki.jit\ndef kernel(x):\n    total = nl.load(x) + 1\n{COPY}")
    run = nkitools.simulate(module.kernel, X, rules="report")
    assert [each.rule for each in run.findings] == ["NK601"]


def test_comments_that_ignore_hold_for_runs_too(load: Load) -> None:
    """With a reason."""
    module = load(f"@nki.jit\ndef kernel(x):\n    names = {{1}}  # nki: ignore[NK601] of the host\n{COPY}")
    assert nkitools.simulate(module.kernel, X).findings == []


CALLED = {
    "a function of the file": """
        def helper():
            return {1}

        @nki.jit
        def kernel(x):
            helper()
        """,
    "a partial": """
        def helper():
            return {1}

        done = functools.partial(helper)

        def kernel(x):
            nl.load(x)
            done()
        """,
    "a kernel": """
        @nki.jit
        def helper(x):
            return {1}

        @nki.jit
        def kernel(x):
            return helper(x)
        """,
    "a method": """
        class Config(nl.NKIObject):
            def size(self):
                return {1}

        @nki.jit
        def kernel(x):
            return Config().size()
        """,
    "a closure": """
        def build(step):
            @nki.jit
            def kernel(x):
                return step()

            return kernel

        def helper():
            return {1}

        kernel = build(helper)
        """,
    "one that is decorated": """
        def kept(function):
            @functools.wraps(function)
            def inner():
                return function()

            return inner

        @kept
        def helper():
            return {1}

        def kernel(x):
            return helper(nl.load(x))
        """,
}


@pytest.mark.parametrize("source", CALLED.values(), ids=CALLED)
def test_functions_that_a_kernel_names_are_looked_at(load: Load, source: str) -> None:
    """Of the same file and others, through whatever stands between."""
    module = load(dedent(source))
    assert [rule for rule, _ in lines(module.kernel)] == ["NK601"]


NOTEBOOK = """\
def helper():
    pass


def other():
    return {1}


@nki.jit
def kernel(x):
    helper()
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, x)
    return out


def made(helper):
    def change(new):
        nonlocal helper
        helper = new

    @nki.jit
    def kernel(x):
        helper()
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x)
        return out

    return kernel, change
"""


@pytest.mark.parametrize("runs", [0, 1, 4])
@pytest.mark.parametrize("names", ["global variable", "enclosing variable"])
def test_a_helper_that_is_defined_anew_is_looked_at(load: Load, names: str, runs: int) -> None:
    """As in a notebook's cell: the kernel ran before, and is not defined again itself."""
    module = load(NOTEBOOK)
    kernel, change = module.kernel, functools.partial(setattr, module, "helper")
    if names == "enclosing variable":
        kernel, change = module.made(module.helper)
    right = module.helper
    for _ in range(runs):
        assert nkitools.simulate(kernel, X).findings == []
    change(module.other)
    for _ in range(2):
        with pytest.raises(nkitools.KernelError, match="set"):
            nkitools.simulate(kernel, X)
    change(right)
    for _ in range(2):
        assert nkitools.simulate(kernel, X).findings == []


def test_functions_of_other_files(load: Load) -> None:
    """The author's own; what is installed is not looked at."""
    imports = "from textwrap import dedent\nfrom linted_helpers import helper\n\n\n"
    source = f"{imports}def kernel(x):\n    helper(dedent(''))\n{COPY}"
    module = load(source, linted_helpers="def helper(text):\n    return {1}\n")
    assert [(each.rule, Path(each.file).name, each.line) for each in source_findings(module.kernel)] == [
        ("NK601", "linted_helpers.py", 2)
    ]


def test_a_launched_function_is_a_kernel(load: Load) -> None:
    """Also where it is not decorated: it takes no keyword-only parameters."""
    module = load(f"def kernel(x, *, flag=True):\n{COPY}")
    assert lines(module.kernel) == [("NK601", 1)]


def test_legacy_kernels_report_their_own(load: Load) -> None:
    """What is wrong in the modern dialect is not in the legacy one."""
    imports = "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\n"
    load("", linted_legacy=f"{imports}\n\n@nki.jit\ndef kernel(x):\n    names = {{1}}\n{COPY}")
    legacy = import_module("linted_legacy")
    assert source_findings(legacy.kernel) == ()
    assert nkitools.simulate(legacy.kernel, X).findings == []


def test_a_decorator_says_the_dialect_in_a_file_of_both(load: Load) -> None:
    """A kernel whose body calls helpers alone, beside one of the other dialect; what it calls is looked at, too."""
    both = "import neuronxcc.nki as legacy\n\n\n"
    body = f"def helper(x):\n    names = {{1}}\n{COPY}"
    kernels = (
        "@nki.jit\ndef kernel(x):\n    return helper(x)\n\n\n@legacy.jit\ndef old(x):\n    names = {2}\n    return x\n"
    )
    module = load(f"{both}{body}\n\n{kernels}")
    line = (HEAD + both + body).splitlines().index("    names = {1}") + 1 - HEAD.count("\n")
    assert lines(module.kernel) == [("NK601", line)]
    assert lines(module.old) == []
    with pytest.raises(nkitools.KernelError, match="NK601"):
        nkitools.simulate(module.kernel, X)


@pytest.mark.parametrize("value", [len, np.add, print, int, functools.partial(len), 3], ids=repr)
def test_what_has_no_source_is_silent(value: Any) -> None:
    """Builtins, and what is no function."""
    assert source_findings(value) == ()


def test_code_without_a_file_is_silent() -> None:
    """A session without history."""
    names: dict[str, Any] = {}
    exec(compile("import nki\n\n\ndef kernel(x):\n    return {x}\n", "<nowhere>", "exec"), names)
    assert source_findings(names["kernel"]) == ()


def test_a_file_that_has_changed_since_is_silent(load: Load, tmp_path: Path) -> None:
    """The source is no longer that of the function."""
    module = load("def kernel(x, y):\n    return {x}\n")
    (tmp_path / "linted_kernels.py").write_text(HEAD + "def kernel(x):\n    return {x}\n")
    assert source_findings(module.kernel) == ()


def test_functions_are_found_behind_what_wraps_them() -> None:
    """Kernels, methods, partials."""

    class Owner:
        def method(self) -> None: ...

    plain = Owner.method
    for value in (Owner().method, functools.partial(Owner().method), staticmethod(plain), plain):
        assert plain_function(value) is plain
    assert plain_function(len) is None
