"""The annotations of the public interface: of everything that the documented names of the package lead to."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import nkitools
from nkitools.dialects.public import whole
from nkitools.dialects.stand_in import _SOURCES, source_of
from nkitools.issue.instruction import Instruction
from nkitools.pytest_plugin import fixtures
from tests.house.sources import nodes_of

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
# A page of the reference shows `.. autofunction:: nkitools.launch.simulate.simulate`.
DIRECTIVE = re.compile(r"^\.\. auto(?:function|class|exception|module):: (nkitools\.[\w.]+)", re.MULTILINE)
FIXTURES = ("KernelRunner", "KernelBenchmark", "NegativeTest")
# What an instruction's definition takes from the pipeline, and returns to it; its callers see neither.
OF_THE_PIPELINE = ("Check", "Plan")
# Where a function lies inside of what wraps it: decorators, properties, class methods, cached properties, instructions.
INSIDE = ("__wrapped__", "fget", "__func__", "func", "function")


@dataclass(frozen=True)
class Place:
    """One annotation that an author's editor shows."""

    where: str  # nkitools.record.run.Run.why(output) for a parameter, nkitools.record.run.Run.chip for a field
    annotation: str


@dataclass
class PublicApi:
    """The public annotations found so far."""

    places: list[Place] = field(default_factory=list)
    seen: set[object] = field(default_factory=set)  # classes and functions, which are each looked at once

    def add(self, value: object) -> None:
        """Add the parameters and fields of a public value, and of the classes that its results and fields name."""
        if isinstance(value, ModuleType):
            for name in getattr(value, "__all__", ()):
                self.add(getattr(value, name))
        elif hasattr(value, "__wrapped__") or isinstance(value, (FunctionType, Instruction)):
            self._add_function(value)
        elif isinstance(value, type):
            self._add_class(value)
        elif type(value).__module__.startswith("nkitools"):
            self._add_class(type(value))

    def _add_class(self, owner: type) -> None:
        for each in owner.__mro__:
            if each in self.seen or not each.__module__.startswith("nkitools"):
                continue
            self.seen.add(each)
            for name, annotation in vars(each).get("__annotations__", {}).items():
                if is_public(name):
                    self.places.append(Place(f"{each.__module__}.{each.__qualname__}.{name}", str(annotation)))
                    self._add_named(each.__module__, str(annotation))
            for name, member in vars(each).items():
                if is_public(name):
                    self._add_function(member, f"{each.__qualname__}.{name}")

    def _add_function(self, member: object, name: str = "") -> None:
        function = written(member)
        if function is None or function in self.seen or not function.__module__.startswith("nkitools"):
            return
        self.seen.add(function)
        for parameter, annotation in function.__annotations__.items():
            if parameter == "return" and annotation not in OF_THE_PIPELINE:
                self._add_named(function.__module__, str(annotation))
            elif parameter != "return" and annotation not in OF_THE_PIPELINE:
                where = f"{function.__module__}.{name or function.__qualname__}({parameter})"
                self.places.append(Place(where, str(annotation)))

    def _add_named(self, module: str, annotation: str) -> None:
        """Add the classes of this package that an annotation names."""
        for node in ast.walk(ast.parse(annotation.strip("'\""), mode="eval")):
            found = named(module, node.id) if isinstance(node, ast.Name) else None
            if isinstance(found, type):
                self._add_class(found)


def is_public(name: str) -> bool:
    """Return whether an author may use a member of this name, or does so by an operator."""
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def written(member: object) -> FunctionType | None:
    """Return the function in the sources that is a member, or that it wraps; None where there is none."""
    found: Any = member
    while not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        inside = next((name for name in INSIDE if hasattr(found, name)), None)
        if inside is None:
            return None
        found = getattr(found, inside)
    # What @dataclass makes has no file; its parameters are the fields.
    return None if found.__code__.co_filename == "<string>" else found


def named(module: str, name: str) -> object:
    """Return what a name in an annotation of a module stands for; None for what this package does not define."""
    if hasattr(sys.modules[module], name):
        return getattr(sys.modules[module], name)
    home = imports_of(module).get(name, "")
    return getattr(import_module(home), name, None) if home.startswith("nkitools") else None


@cache
def imports_of(module: str) -> dict[str, str]:
    """Return for each name that a module imports, for type checkers alone too, the module that it comes from."""
    file = sys.modules[module].__file__
    assert file is not None
    imports = [node for node in nodes_of(Path(file)) if isinstance(node, ast.ImportFrom)]
    return {each.asname or each.name: node.module or "" for node in imports for each in node.names}


def documented() -> Iterator[object]:
    """Return what the pages of the reference show by name."""
    for page in sorted(REFERENCE.glob("*.md")):
        for name in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            home, _, inside = name.rpartition(".")
            found = getattr(import_module(home), inside, None)
            yield import_module(name) if found is None else found


def stood_in() -> Iterator[object]:
    """Return every name of the modules that stand in for AWS's."""
    for name in _SOURCES:
        namespace = vars(import_module(source_of(name) or ""))
        for each in namespace["__all__"]:
            yield whole(namespace, each)


def roots() -> Iterator[object]:
    """Return what authors import, and what the fixtures give to tests."""
    yield nkitools
    yield from documented()
    yield from stood_in()
    for name in FIXTURES:
        yield getattr(fixtures, name)


def places_of(values: Iterable[object]) -> list[Place]:
    """Return every public annotation that these values lead to."""
    api = PublicApi()
    for value in values:
        api.add(value)
    return api.places
