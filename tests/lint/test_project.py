"""Calls are followed into functions of the same project, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.linted import findings, written

pytestmark = pytest.mark.usefixtures("parsed")

KERNEL = """\
import nki
{imports}


@nki.jit
def kernel(x):
    return {call}(x)
"""
HELPER = "def helper(x):\n    return {1, x}\n"
FIRST = "from helpers import helper\n\n\ndef first(x):\n    return helper(x)\n"
PROJECTS = {
    "a function of the same file": ("", "helper", {"kernels.py": HELPER}),
    "of a file beside it": ("from helpers import helper", "helper", {"helpers.py": HELPER}),
    "under another name": ("from helpers import helper as h", "h", {"helpers.py": HELPER}),
    "of a module": ("import helpers", "helpers.helper", {"helpers.py": HELPER}),
    "of a package": ("from pkg.sub.helpers import helper", "helper", {"pkg/sub/helpers.py": HELPER}),
    "of a package by its path": ("import pkg.helpers", "pkg.helpers.helper", {"pkg/helpers.py": HELPER}),
    "of a package's __init__": ("from pkg import helper", "helper", {"pkg/__init__.py": HELPER}),
    "in src": ("from pkg.helpers import helper", "helper", {"src/pkg/helpers.py": HELPER}),
    "in pytest's pythonpath": (
        "from pkg.helpers import helper",
        "helper",
        {"libraries/pkg/helpers.py": HELPER, "pytest.ini": "[pytest]\npythonpath = libraries\n"},
    ),
    "passed on": ("from pkg import helper", "helper", {"pkg/__init__.py": "from .a import helper", "pkg/a.py": HELPER}),
    "by a star": ("from pkg import helper", "helper", {"pkg/__init__.py": "from .a import *", "pkg/a.py": HELPER}),
    "as a value": ("from helpers import helper", "(lambda f: f)(helper)", {"helpers.py": HELPER}),
    "called by another": ("from first import first", "first", {"first.py": FIRST, "helpers.py": HELPER}),
}


@pytest.mark.parametrize(("imports", "call", "files"), PROJECTS.values(), ids=PROJECTS)
def test_following_calls(tmp_path: Path, imports: str, call: str, files: dict[str, str]) -> None:
    """The finding stands in the file of the function, once."""
    kernel = KERNEL.format(imports=imports, call=call)
    own = files.get("kernels.py", "")
    paths = written(tmp_path, {**files, "kernels.py": kernel + "\n\n" + own})
    found = [each for each in findings(paths["kernels.py"]) if each.rule == "NK601"]
    assert [each.message for each in found] == ["a set is no container of NKI"]
    assert Path(found[0].file).read_text().splitlines()[found[0].line - 1] == "    return {1, x}"


def test_relative_imports(tmp_path: Path) -> None:
    """Within a package, from above and beside."""
    paths = written(
        tmp_path,
        {
            "pkg/__init__.py": "",
            "pkg/shared.py": HELPER,
            "pkg/sub/__init__.py": "",
            "pkg/sub/near.py": HELPER,
            "pkg/sub/kernels.py": KERNEL.format(
                imports="from ..shared import helper\nfrom . import near", call="near.helper(helper)"
            ),
        },
    )
    found = findings(paths["pkg/sub/kernels.py"])
    assert [Path(each.file).name for each in found] == ["shared.py", "near.py"]


def test_circles_end(tmp_path: Path) -> None:
    """Files and functions that name each other, and classes that name themselves."""
    paths = written(
        tmp_path,
        {
            "a.py": "from b import g\nfrom b import h as f2\n\n\ndef f(x):\n    return g(x)\n",
            "b.py": "from a import f\nfrom a import f2 as h\n\n\ndef g(x):\n    return f(x)\n\n\nclass C(C): ...\n",
            "kernels.py": KERNEL.format(imports="from a import f, f2\nfrom b import C", call="f2(f)(C())"),
        },
    )
    assert findings(paths["kernels.py"]) == []


def test_what_is_installed_is_not_followed(tmp_path: Path) -> None:
    """Neither the standard library nor packages; a file of the project that is called like a module is not taken."""
    paths = written(
        tmp_path,
        {
            "textwrap.py": "def dedent(x):\n    return {1}\n",
            "nki/language.py": "def helper(x):\n    return {1}\n",
            "kernels.py": KERNEL.format(imports="from textwrap import dedent", call="dedent"),
        },
    )
    assert findings(paths["kernels.py"]) == []


def test_one_finding_for_two_kernels(tmp_path: Path) -> None:
    """Both call the function, both files are linted: it is told once."""
    paths = written(
        tmp_path,
        {
            "helpers.py": HELPER,
            "a.py": KERNEL.format(imports="from helpers import helper", call="helper"),
            "b.py": KERNEL.format(imports="from helpers import helper", call="helper"),
        },
    )
    found = findings(paths["a.py"], paths["b.py"], paths["helpers.py"])
    assert [(each.rule, Path(each.file).name) for each in found] == [("NK601", "helpers.py")]


def test_a_helper_has_the_dialect_of_its_caller(tmp_path: Path) -> None:
    """What names nothing of NKI is judged as what calls it."""
    legacy = KERNEL.format(imports="from helpers import helper", call="helper").replace("nki", "neuronxcc.nki")
    paths = written(tmp_path, {"helpers.py": HELPER, "legacy.py": legacy})
    assert findings(paths["legacy.py"]) == []


@pytest.mark.parametrize(
    "source",
    [
        "import nki\n\n\ndef kernel(x):\n    return {x}\n\n\nlaunched = nki.jit(kernel)\n",
        "import nki\n\n\ndef kernel(x):\n    return {x}\n\n\nprint(nki.simulate(kernel)(1))\n",
        "import nki\nimport nkitools\n\n\ndef kernel(x):\n    return {x}\n\n\nnkitools.simulate(kernel, 1)\n",
        "import nki\n\n\ndef kernel(x):\n    return {x}\n\n\ndef test_it(run_kernel):\n    run_kernel(kernel, 1)\n",
        "import nki\nimport nki.isa as nisa\n\n\ndef kernel(x):\n    nisa.memset(x, 0)\n    return {x}\n",
    ],
    ids=["made a kernel later", "simulated", "simulated by nkitools", "run by a test", "issues instructions"],
)
def test_functions_that_are_kernels_without_a_decorator(tmp_path: Path, source: str) -> None:
    """What makes or runs kernels is handed one; instructions are issued by kernel code only."""
    paths = written(tmp_path, {"kernels.py": source})
    assert [each.rule for each in findings(paths["kernels.py"])] == ["NK601"]


def test_a_test_that_calls_instructions_is_none(tmp_path: Path) -> None:
    """It wants to see them refused."""
    source = "import nki.language as nl\n\n\ndef test_outside():\n    nl.zeros((1, 2), {1})\n"
    paths = written(tmp_path, {"test_outside.py": source})
    assert findings(paths["test_outside.py"]) == []
