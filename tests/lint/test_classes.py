"""NK601: classes that kernels make objects of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.linted import findings, places, written

pytestmark = pytest.mark.usefixtures("parsed")

KERNEL = """\
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Generic, NamedTuple, TypeVar

import nki
import nki.language as nl
from elsewhere import Base

{definition}


@nki.jit
def kernel(x):
    made = Config(1)
    return x
"""
LINE = 9
FINE = {
    "derived": "class Config(nl.NKIObject):\n    size: int",
    "a dataclass": "@dataclass\nclass Config(nl.NKIObject):\n    size: int",
    "an enumeration": "class Config(Enum):\n    ONE = 1",
    "derived from one that is": "class First(nl.NKIObject):\n    size: int\n\n\nclass Config(First):\n    other: int",
    "of a base that cannot be seen": "class Config(Base):\n    size: int",
    "a function": "def Config(size):\n    return size",
}
REFUSED = {
    "plain": ("class Config:\n    def __init__(self, size):\n        self.size = size", 0),
    "a dataclass of its own": ("@dataclass\nclass Config:\n    size: int", 1),
    "object": ("class Config(object):\n    pass", 0),
    "a named tuple": ("class Config(NamedTuple):\n    size: int", 0),
    "a second base": ("T = TypeVar('T')\n\n\nclass Config(nl.NKIObject, Generic[T]):\n    size: int", 3),
    "derived from a plain one": ("class First:\n    pass\n\n\nclass Config(First):\n    pass", 4),
}


@pytest.mark.parametrize("definition", FINE.values(), ids=FINE)
def test_classes_that_the_compiler_takes(tmp_path: Path, definition: str) -> None:
    """Those derived from NKIObject, enumerations, and what the source does not show."""
    files = written(tmp_path, {"kernels.py": KERNEL.format(definition=definition)})
    assert findings(files["kernels.py"]) == []


@pytest.mark.parametrize(("definition", "at"), REFUSED.values(), ids=REFUSED)
def test_classes_that_it_does_not_take(tmp_path: Path, definition: str, at: int) -> None:
    """The finding stands at the class, once, however many kernels use it."""
    files = written(tmp_path, {"kernels.py": KERNEL.format(definition=definition)})
    assert places(findings(files["kernels.py"])) == [("NK601", LINE + at, 1)]


def test_a_class_in_another_file_is_found_there(tmp_path: Path) -> None:
    """Also as the annotation of a kernel's parameter, whose object the caller makes; not where it is only raised."""
    files = written(
        tmp_path,
        {
            "package/__init__.py": "",
            "package/settings.py": "class Tiles:\n    pass\n\n\nclass Wrong(Exception):\n    pass\n",
            "package/kernels.py": """\
            import nki
            from .settings import Tiles, Wrong


            @nki.jit
            def kernel(x, tiles: Tiles):
                if x.ndim > 3:
                    raise Wrong("ndim")
                return x
            """,
        },
    )
    found = findings(files["package/kernels.py"])
    assert [(each.rule, Path(each.file).name, each.line) for each in found] == [
        ("NK601", "kernels.py", 8),
        ("NK601", "settings.py", 1),
    ]


def test_a_class_that_is_defined_in_the_kernel(tmp_path: Path) -> None:
    """There it is at the place of use anyway."""
    files = written(
        tmp_path,
        {
            "kernels.py": """\
            import nki


            @nki.jit
            def kernel(x):
                class Pair:
                    pass

                return x
            """
        },
    )
    assert places(findings(files["kernels.py"])) == [("NK601", 6, 5)]


def test_methods_that_kernel_code_calls_are_kernel_code(tmp_path: Path) -> None:
    """A method is looked at where its name is called; those for the host are not."""
    files = written(
        tmp_path,
        {
            "kernels.py": """\
            import nki
            import nki.language as nl


            class Config(nl.NKIObject):
                size: int

                def __post_init__(self):
                    self.parts = {1}

                def of(self):
                    return {2}

                def host(self):
                    return {3}


            @nki.jit
            def kernel(x):
                return Config(1).of()
            """
        },
    )
    assert places(findings(files["kernels.py"])) == [("NK601", 9, 22), ("NK601", 12, 16)]
