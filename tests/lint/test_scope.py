"""Names: every way to import NKI is understood, and what cannot be understood is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.linted import findings, places, written

pytestmark = pytest.mark.usefixtures("parsed")

# Imports, the decorator, and a name that was removed, as they are written then.
CUSTOMARY = "import nki\nimport nki.language as nl"
GUARDED = "try:\n    import nki\n    import nki.language as nl\nexcept ImportError:\n    nki = nl = None"
ALIASES = {
    "the customary ones": (CUSTOMARY, "nki.jit", "nl.arange"),
    "another name": ("import nki as n\nfrom nki import language as lang", "n.jit", "lang.arange"),
    "of the function": ("from nki import jit\nfrom nki.language import arange as ar", "jit", "ar"),
    "the whole path": ("import nki\nimport nki.language", "nki.jit", "nki.language.arange"),
    "a star": ("from nki import jit\nfrom nki.language import *", "jit", "arange"),
    "an alias": ("import nki\nimport nki.language as nl\nar = nl.arange", "nki.jit", "ar"),
    "guarded": (GUARDED, "nki.jit", "nl.arange"),
    "with keywords": (CUSTOMARY, "nki.jit(mode='auto')", "nl.arange"),
    "a partial": (f"{CUSTOMARY}\nfrom functools import partial", "partial(nki.jit, mode='auto')", "nl.arange"),
    "nothing at all": ("", "nki.jit", "nl.arange"),
}


@pytest.mark.parametrize(("imports", "decorator", "name"), ALIASES.values(), ids=ALIASES)
def test_every_way_to_import(tmp_path: Path, imports: str, decorator: str, name: str) -> None:
    """The removed name is found wherever it is used (and where it is imported, if it is)."""
    source = f"{imports}\n\n\n@{decorator}\ndef kernel(x):\n    return {name}(128)\n"
    files = written(tmp_path, {"kernels.py": source})
    line = source.splitlines().index(f"    return {name}(128)") + 1
    assert ("NK608", line, 12) in places(findings(files["kernels.py"]))


def test_imports_in_a_function_hold_there(tmp_path: Path) -> None:
    """One file may hold both dialects, as tests do."""
    files = written(
        tmp_path,
        {
            "test_both.py": """\
            def test_modern():
                import nki
                import nki.language as nl

                @nki.jit
                def kernel(x):
                    return nl.arange(4)


            def test_legacy():
                import neuronxcc.nki as nki
                import neuronxcc.nki.language as nl

                @nki.jit
                def kernel(x):
                    return nl.load(x[nl.arange(4)])
            """
        },
    )
    assert places(findings(files["test_both.py"])) == [("NK608", 7, 16), ("NK603", 16, 24)]


@pytest.mark.parametrize(("dialect", "expected"), [("auto", []), ("modern", ["NK608"]), ("legacy", ["NK603"])])
def test_a_file_that_may_be_of_both_dialects(tmp_path: Path, dialect: str, expected: list[str]) -> None:
    """Nothing is guessed: whoever lints says which one is meant."""
    files = written(
        tmp_path,
        {
            "kernels.py": """\
            try:
                import nki
                import nki.language as nl
            except ImportError:
                import neuronxcc.nki as nki
                import neuronxcc.nki.language as nl


            def kernel(x):
                return nl.load(x[nl.arange(4)])


            launched = nki.jit(kernel)
            """
        },
    )
    found = [each for each in places(findings(files["kernels.py"], dialect=dialect)) if each[1] == 10]
    assert [rule for rule, *_ in found] == expected


def test_names_that_are_something_else(tmp_path: Path) -> None:
    """A parameter or a variable called nl is not NKI."""
    files = written(
        tmp_path,
        {
            "kernels.py": """\
            import nki


            def other():
                return 1


            @nki.jit
            def kernel(x, nl):
                nki = other()
                nki.whatever(nl.arange(4))
                a = b
                b = a
                return nl.load(x, foo=1)
            """
        },
    )
    assert findings(files["kernels.py"]) == []


def test_columns_count_characters(tmp_path: Path) -> None:
    """What stands in front of a finding may be no ASCII."""
    source = "import nki\n\n\n@nki.jit\ndef kernel(x):\n    name = 'größe'; chosen = {1}\n    return name, chosen\n"
    files = written(tmp_path, {"kernels.py": source})
    assert places(findings(files["kernels.py"])) == [("NK601", 6, 30)]
