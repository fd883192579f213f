"""FILE::KERNEL: a kernel of a Python file, and what the file says of it, as every command, server and sweep reads it.

A file says how its kernel is called and what it should give, by these names at its top: ``inputs`` (a tuple of arrays,
a dictionary by name, or a function that returns one; ``arguments`` is another name for such a function), ``reference``
(the right results, or a function of the arguments), ``expect`` (functions of the kernel's tensors, by name), ``space``
(the cases of a sweep: values by the names of the parameters of ``inputs``) and ``settings`` (the variants of a kernel:
values by the names of its keywords or of the file's constants).
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from nkitools.facts.case_space import Space, choices_of, drawn_points, is_strategy, points_of
from nkitools.facts.pytest_ini import import_paths
from nkitools.lint.project import is_installed, project_directory
from nkitools.rules.top_level import bound_names

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel

Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

_HOW_TO_SAY = (
    "says no inputs: give it `inputs`, a tuple of arrays, a dictionary by name or a function that returns one; or name "
    "a file of arrays, --inputs FILE.npz"
)
_KERNELS = ("nkitools.launch.kernel.KernelObject", "nkitools.customop.operator.Operator")
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_AWS = ("nki", "neuronxcc")
_modules: dict[str, ModuleType] = {}  # those that no import leads to, by their files


class BadRequest(Exception):
    """The file, the kernel or what the file says of it is not as it must be; the text is for the user."""


@dataclass(frozen=True)
class KernelFile:
    """A Python file that has been run, and what it says of its kernels."""

    path: Path
    module: ModuleType

    def kernel(self, name: str) -> Kernel:
        """Return the kernel ``name``. BadRequest for what is none, and for a function that another file defines.

        A client of a server chooses the name, and ``system`` of a file with ``from os import system`` is no kernel.
        """
        return self._callable(name, "kernel")

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function ``name``, to compare with. BadRequest as of `kernel`."""
        return self._callable(name, "function")

    def _callable(self, name: str, what: str) -> Callable[..., Any]:
        found = getattr(self.module, name, None)
        if not callable(found) or not self._may_run(name, found):
            there = sorted(self._callables())
            why = "" if not callable(found) else f": {name} is a function that the file imports, and no kernel"
            raise BadRequest(f"{self.path} has no {what} {name}{why}; it has {', '.join(there) or 'none'}")
        return found  # type: ignore[no-any-return]

    def _callables(self) -> Iterator[str]:
        for name, value in list(vars(self.module).items()):
            if callable(value) and not name.startswith("_") and self._may_run(name, value):
                yield name

    def _may_run(self, name: str, value: object) -> bool:
        """Return whether a name of the file is a kernel, wherever it is defined, or a function of the file itself."""
        kinds = type(value).__mro__
        if any(f"{each.__module__}.{each.__qualname__}" in _KERNELS for each in kinds):
            return True
        if type(value).__module__.partition(".")[0] in _AWS:
            return True
        inner = _innermost(value)
        if isinstance(inner, FunctionType):
            return inner.__globals__ is vars(self.module) or self._defines(name) or _is_pallas(inner)
        return type(inner).__module__ == self.module.__name__ or self._defines(name)

    def _defines(self, name: str) -> bool:
        """Return whether the file has ``def name``: a decorator may have put the function of another file there."""
        bound = bound_names(self.path.read_text(encoding="utf-8", errors="replace")) or {}
        return isinstance(bound.get(name), (ast.FunctionDef, ast.AsyncFunctionDef))

    def inputs(self, arrays: str | None = None) -> Call:
        """Return the arguments of a kernel: arrays of an .npz file by name (``arr_0`` by position), else ``inputs``.

        Where ``inputs`` is a function of a case's names, the case is the first one of ``space``. BadRequest where the
        file says none.
        """
        if arrays is not None:
            return _from_npz(arrays)
        said = getattr(self.module, "inputs", None)
        said = self.arguments if said is None else said
        if callable(said):
            said = said(**self._first_case(said))
        if isinstance(said, Mapping):
            return (), dict(said)
        if isinstance(said, (tuple, list)):
            return tuple(said), {}
        raise BadRequest(f"{self.path} {_HOW_TO_SAY}")

    def _first_case(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return what a function of a case is called with: the values of the first case that it has parameters for."""
        parameters = inspect.signature(function).parameters.values()
        needed = [each.name for each in parameters if each.default is each.empty and each.kind not in _VARIABLE]
        takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
        space = self.space
        if not needed and (not takes_all or space is None):
            return {}
        if space is None:
            raise BadRequest(
                f"{self.path}: inputs takes {', '.join(needed)}, and the file has no `space` that says them"
            )
        is_drawn = any(map(is_strategy, choices_of(space).values()))
        case = drawn_points(space, 1, 0)[0] if is_drawn else next(points_of(space))
        missing = [each for each in needed if each not in case]
        if missing:
            raise BadRequest(f"{self.path}: inputs takes {', '.join(missing)}, which its space does not have")
        known = {each.name for each in parameters}
        return {name: value for name, value in case.items() if takes_all or name in known}

    @property
    def arguments(self) -> Callable[..., Any] | None:
        """The function that makes a case's arguments: ``arguments``, else ``inputs``; None where neither is one."""
        for name in ("arguments", "inputs"):
            found = getattr(self.module, name, None)
            if callable(found):
                return found  # type: ignore[no-any-return]
        return None

    @property
    def reference(self) -> Any:
        """The right results: arrays, or a function of the arguments; None where the file says none."""
        return getattr(self.module, "reference", None)

    @property
    def expect(self) -> Mapping[str, Any]:
        """The right values of the kernel's tensors, by name; empty where the file says none."""
        return getattr(self.module, "expect", None) or {}

    @property
    def space(self) -> Space | None:
        """The cases of a sweep: a dictionary, or the path of a TOML file; None where the file says none."""
        return self._space("space")

    @property
    def settings(self) -> Space | None:
        """The variants of a kernel: ``settings``, else ``space`` where no function takes its names as a case."""
        return self._space("settings") or (self._space("space") if not self._takes_cases() else None)

    def _takes_cases(self) -> bool:
        return self.arguments is not None and bool(inspect.signature(self.arguments).parameters)

    def _space(self, name: str) -> Space | None:
        said = getattr(self.module, name, None)
        return self.path.parent / said if isinstance(said, (str, os.PathLike)) else said


def split(text: str) -> tuple[str, str]:
    """Return the two parts of FILE::KERNEL. BadRequest where the text has no kernel, or names no file."""
    file, separator, name = text.rpartition("::")
    if not separator or not name:
        raise BadRequest(f"{text} names no kernel: write FILE::KERNEL")
    if not Path(file).is_file():
        raise BadRequest(f"{file} is no file")
    return file, name


def seen(text: str, *, needs_inputs: bool) -> tuple[str, str]:
    """Return the two parts of FILE::KERNEL, where the file's text shows its kernel and its inputs; nothing is run.

    BadRequest as of `split`, where the file has no such kernel, and where it says no inputs though they are needed.
    """
    file, name = split(text)
    names = bound_names(Path(file).read_text(encoding="utf-8", errors="replace"))
    if names is not None and name not in names:
        own = (each for each, by in names.items() if isinstance(by, ast.FunctionDef | ast.Assign))
        there = ", ".join(sorted(each for each in own if not each.startswith("_")))
        raise BadRequest(f"{file} has no kernel {name}; it has {there or 'none'}")
    if names is not None and needs_inputs and not {"inputs", "arguments"} & set(names):
        raise BadRequest(f"{file} {_HOW_TO_SAY}")
    return file, name


def load(file: str | Path) -> KernelFile:
    """Run a Python file as pytest would import it, and return what it says.

    A file of a package is imported as its module, so that relative imports work. On ``sys.path`` come the folder above
    the package (or the file's own), the project's ``pythonpath`` of pytest, and last the project's folder and its
    ``src``. BadRequest where the file cannot be run, with the line that raised.
    """
    path = Path(file).resolve()
    root, name = module_place(path)
    extend_path(root, path)
    try:
        module = module_of(name, str(path)) if "." in name else _run_alone(path, name)
    except Exception as error:  # the author's own
        raise BadRequest(_complaint(Path(file), error)) from error
    return KernelFile(Path(file), module)


def module_of(name: str, file: str) -> ModuleType:
    """Return the module of a file: that of its name where an import leads to the file, else the file, run once."""
    there = sys.modules.get(name)
    if there is not None and _is_file(getattr(there, "__file__", None), file):
        return there
    if file not in _modules:
        root, dotted = module_place(Path(file))
        extend_path(root, Path(file))
        for each in dict.fromkeys((name, dotted)):
            if _leads_to(each, file):
                return importlib.import_module(each)
        _modules[file] = _run_alone(Path(file), name.rpartition(".")[2])
    return _modules[file]


def known_modules() -> list[ModuleType]:
    """Return the modules that no import leads to."""
    return list(_modules.values())


def module_place(path: Path) -> tuple[Path, str]:
    """Return the folder that an import of the file starts from, and the module's dotted name.

    Packages are folders with an ``__init__.py``, as pytest has it, and those that relative imports of the file name.
    """
    root, parts = path.parent, [path.stem]
    relative = _relative_levels(path)
    while (root / "__init__.py").is_file() or len(parts) <= relative:
        if root == root.parent:
            break
        parts.insert(0, root.name)
        root = root.parent
    return root, ".".join(parts)


def _relative_levels(path: Path) -> int:
    """Return how many folders up the file's relative imports reach: 1 for ``from .tiles import add``."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    except (SyntaxError, ValueError):
        return 0
    return max((each.level for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)), default=0)


def extend_path(root: Path, path: Path) -> None:
    """Put on ``sys.path`` what a file is imported from: see `load`."""
    top = project_directory(path)
    first = [str(root), *import_paths(path)]
    sys.path[:0] = [each for each in dict.fromkeys(first) if each not in sys.path]
    sys.path += [str(each) for each in (top, top / "src") if each.is_dir() and str(each) not in sys.path]


def _run_alone(path: Path, name: str) -> ModuleType:
    """Run a file that is no module of a package; each call runs it anew."""
    taken = name in sys.stdlib_module_names or not _is_file(getattr(sys.modules.get(name), "__file__", str(path)), path)
    name = f"nkitools_file_{name}" if taken else name  # a kernel in select.py does not become Python's select
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadRequest(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _leads_to(name: str, file: str) -> bool:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and _is_file(spec.origin, file)


def _is_file(one: str | None, other: str | Path) -> bool:
    return one is not None and Path(one).resolve() == Path(other).resolve()


def _innermost(value: object) -> object:
    """Return what runs in the end: the function of a partial, a method or a decorator that says what it wraps."""
    while True:
        if isinstance(value, partial):
            value = value.func
        elif isinstance(value, MethodType):
            value = value.__func__
        elif hasattr(value, "__wrapped__"):
            value = value.__wrapped__
        else:
            return value


def _is_pallas(function: FunctionType) -> bool:
    """Return whether an imported function is a Pallas kernel of the author's own: JAX's own functions are none."""
    if "jax" not in sys.modules or is_installed(function.__code__.co_filename):
        return False
    from nkitools.pallas.detect_pallas import is_pallas_function

    return is_pallas_function(function)


def _from_npz(file: str) -> Call:
    import numpy as np

    with np.load(file, allow_pickle=False) as archive:
        arrays = dict(archive)
    by_position = [arrays.pop(f"arr_{number}") for number in range(len(arrays)) if f"arr_{number}" in arrays]
    return tuple(by_position), arrays


def _complaint(file: Path, error: Exception) -> str:
    """Return why a file could not be run, with the last line of the author's that was reached."""
    if isinstance(error, BadRequest):
        return str(error)
    if isinstance(error, SyntaxError):
        return f"{error.filename or file}:{error.lineno}: {error.msg}"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not is_installed(each.filename)]
    own = [each for each in frames if not each.filename.startswith(str(Path(__file__).parent))]
    place = f"{own[-1].filename}:{own[-1].lineno}" if own else str(file)
    return f"{file} cannot be run: {type(error).__name__}: {error} ({place})"
