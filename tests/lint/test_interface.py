"""NK201, NK607, NK608, NK609, NK615, NK618: names and calls, held against the real modules."""

from __future__ import annotations

from pathlib import Path

import pytest

import nkitools
from nkitools.facts import options
from nkitools.suggestions.lint_interface import Dialects
from tests.lint.linted import LEGACY, findings, marked, of_body, places, written
from tests.nki_versions import SINCE_0_7, since

MODERN_CASES = {
    "an unknown keyword": "nisa.activation(dst=x, func=nl.exp, data=x)  # NK609 1",
    "a missing argument": "nisa.tensor_tensor(x, x, op=nl.add)  # NK609 1",
    "too many": "nl.load(x, nl.float32, 1)  # NK609 1",
    "as it should be": "t = nl.load(x, dtype=nl.float32)\nnisa.activation(dst=t, op=nl.exp, data=t)",
    "what cannot be seen": "options = dict()\nnisa.activation(*x, **options)",
    "a mask": "tile = nl.load(x, mask=x.ndim == 2)  # NK608 8",
    "an index": "i = nl.arange(128)  # NK608 5",
    "a grid": "i_p, i_f = nl.mgrid[0:128, 0:512]  # NK608 12",
    "a tensor that is copied": "nisa.tensor_copy_dynamic_src(x, x)  # NK608 1",
    "a memory as a text, by its place": "tile = nl.zeros((128, 4), nl.float32, 'psum')  # NK608 39",
    "a memory as a text": "tile = nl.ndarray((128, 4), dtype=nl.float32, buffer='sbuf')  # NK608 54",
    "a misspelt name": "tile = nl.lod(x)  # NK607 8",
    "a remainder": "tile = nl.mod(nl.load(x), 2.0)  # NK615 8",
    "an operator that divides": "t = nl.load(x)\nnisa.tensor_scalar(t, t, op0=nl.divide, operand0=2.0)  # NK615 30",
    "a quotient": "tile = nl.divide(nl.load(x), 2.0)  # NK615 8",
    "a size that is called otherwise": "n = nl.tile_size.total_available_sbuf_size  # NK618 5",
    "a store the wrong way round": (
        "out = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.shared_hbm)\nnl.store(nl.load(x), out)  # NK201 1"
    ),
}
LEGACY_CASES = {
    "an unknown keyword": "tile = nl.load(x, foo=3)  # NK609 8",
    "a keyword of the compiler": "tile = nl.load(x, name='tile')\nother = nl.exp(tile, mask=None)",
    "a missing argument": "tile = nisa.tensor_tensor(x, op=nl.add)  # NK609 8",
    "an index": "i = nl.arange(128)[:, None]",
    "a name that AWS may have": "tile = nl.something(x)",
}


@pytest.mark.parametrize("body", since("what cannot be seen", MODERN_CASES))
def test_calls_of_the_modern_dialect(tmp_path: Path, body: str) -> None:
    """What is marked is found, and nothing else."""
    marked(tmp_path, body)


@pytest.mark.parametrize("body", LEGACY_CASES.values(), ids=LEGACY_CASES)
def test_calls_of_the_legacy_dialect(tmp_path: Path, body: str) -> None:
    """As above."""
    marked(tmp_path, body, LEGACY)


def test_what_was_removed_names_what_took_its_place(tmp_path: Path) -> None:
    """The remedy is the one that a run gives."""
    (found,) = of_body(tmp_path, "nisa.tensor_copy_dynamic_src(x, x)")
    assert "nisa.tensor_copy with .ap(scalar_offset=...)" in found.remedy
    (masked,) = of_body(tmp_path, "nl.load(x, mask=None)")
    assert "slice" in masked.remedy


def test_a_wrong_call_shows_the_call_form(tmp_path: Path) -> None:
    """Members of enums as they are written."""
    (found,) = of_body(tmp_path, "nisa.tensor_copy(x)")
    assert found.remedy.startswith("The call form is nisa.tensor_copy(dst, src, engine=nisa.engine.unknown")


def test_what_makes_kernels(tmp_path: Path) -> None:
    """Keywords of the decorators, and imports of what is gone."""
    files = written(
        tmp_path,
        {
            "kernels.py": """\
            import nki
            from nki.language import arange


            @nki.jit(platform_target="trn2")
            def first(x):
                return x


            @nki.jit(mode="auto", speed=3)
            def second(x):
                return x


            third = nki.jit(second, platform_target="trn1")
            """
        },
    )
    assert places(findings(files["kernels.py"])) == [
        ("NK608", 2, 1),
        ("NK608", 5, 2),
        ("NK609", 10, 2),
        ("NK608", 15, 9),
    ]


def test_an_import_that_is_tried_may_fail(tmp_path: Path) -> None:
    """Whoever catches its failure has thought of it."""
    source = "import nki\n\ntry:\n    from nki.language import arange\nexcept ImportError:\n    arange = None\n"
    assert findings(written(tmp_path, {"kernels.py": source})["kernels.py"]) == []


def test_the_modern_dialect_refuses_the_legacy_modules(tmp_path: Path) -> None:
    """Where a file must be of the modern dialect, its imports of the other are errors; else they are its dialect."""
    files = written(tmp_path, {"kernels.py": "import neuronxcc.nki.language as nl\nfrom neuronxcc import nki\n"})
    assert places(findings(files["kernels.py"], dialect="modern")) == [("NK608", 1, 1), ("NK608", 2, 1)]
    assert findings(files["kernels.py"]) == []


@pytest.mark.parametrize("name", ["nki", "nki.isa", "nki.language", "neuronxcc.nki.isa", "neuronxcc.nki.language"])
def test_every_name_of_a_module_is_known(name: str) -> None:
    """The interface is that of the stand-in modules themselves."""
    import importlib

    nkitools.install_stand_in(prefer="builtin")
    interface = Dialects()
    members = importlib.import_module(name).__all__
    assert members
    assert [member for member in members if interface.missing(f"{name}.{member}") is not None] == []


KINDS = "first = nisa.memset(x, 1.0)\nnisa.memset(x, 2.0).depends_on(first{kind})"


@pytest.mark.parametrize(
    ("version", "kind", "expected"),
    [
        ("0.7", "", [("NK618", "hint")]),
        ("0.7", ", kind=nisa.dependency.schedule", []),
        ("0.7", ", **more", []),
        ("0.6", "", []),
        ("0.6", ", kind=nisa.dependency.runtime", [("NK608", "error"), ("NK609", "error")]),
    ],
)
def test_kinds_of_dependencies(tmp_path: Path, version: str, kind: str, expected: list[tuple[str, str]]) -> None:
    """Since 0.7 a dependency has a kind, and one without is announced to go; before that there is none."""
    with options.override(nki_version=version):
        found = of_body(tmp_path, KINDS.format(kind=kind))
    assert sorted((each.rule, each.severity) for each in found if each.rule != "NK616") == expected


@pytest.mark.parametrize(("version", "severity"), [("0.6", "hint"), ("auto", "warning"), ("0.7", "error")])
def test_a_name_that_goes(tmp_path: Path, version: str, severity: str) -> None:
    """Announced by 0.6, gone from 0.7: a warning where no version is named, refused where 0.7 is."""
    with options.override(nki_version=version):
        (found,) = of_body(tmp_path, "for i in nl.dynamic_range(4):\n    pass")
    assert (found.rule, found.severity) == ("NK608" if version == "0.7" else "NK618", severity)
    assert "nl.fori_loop" in found.remedy


@SINCE_0_7
@pytest.mark.parametrize("line", ["n = nl.affine_range(4)", "kind = nisa.VirtualRegister", "e = nisa.vector_engine"])
def test_a_name_that_is_to_go(tmp_path: Path, line: str) -> None:
    """A hint, with what to write instead."""
    (found,) = of_body(tmp_path, line)
    assert (found.rule, found.severity) == ("NK618", "hint")
    assert found.remedy.startswith("Use ")


@SINCE_0_7
@pytest.mark.parametrize(("value", "found"), [("True", [("NK621", 4)]), ("False", [])])
def test_an_option_that_a_simulation_does_not_show(tmp_path: Path, value: str, found: list[tuple[str, int]]) -> None:
    """CompileConfig(non_ssa_legalization=True) is a hint of lint as of runs."""
    path = tmp_path / "kernel.py"
    path.write_text(
        "import nki\nfrom nki.compiler import CompileConfig\n\n"
        f"@nki.jit(compile_config=CompileConfig(non_ssa_legalization={value}))\ndef kernel(x):\n    return x\n"
    )
    assert [(each.rule, each.line) for each in findings(path)] == found
