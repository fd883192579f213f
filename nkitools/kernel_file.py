"""FILE::KERNEL: a kernel of a Python file, and what the file says of it, as every command, server and sweep reads it.

A file says how its kernel is called and what it should give, by these names at its top: ``inputs`` (a tuple of arrays,
a dictionary by name, or a function that returns one; ``arguments`` is another name for such a function), ``reference``
(the right results, or a function of the arguments), ``expect`` (functions of the kernel's tensors, by name), ``space``
(the cases of a sweep: values by the names of the parameters of ``inputs``), ``settings`` (the variants of a kernel:
values by the names of its keywords or of the file's constants) and ``mutates`` (the parameters that it may change). A
parameter ``rng`` of ``inputs`` is a generator of random numbers.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import BadZipFile, is_zipfile

from nkitools.authors_code.known_modules import is_installed
from nkitools.facts.case_space import Space, choices_of, drawn_points, is_strategy, points_of
from nkitools.kernel_settings import (
    GENERATOR,
    VARIABLE,
    check_setting,
    constants_of,
    constants_set,
    innermost,
    keywords_of,
    layers,
    parameters_of,
    with_generator,
    with_keywords,
)
from nkitools.module_files import extend_path, forget_namesakes, module_of, module_place, place_of, run_alone, text_of
from nkitools.rules.finding import KernelError
from nkitools.rules.top_level import bound_names

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel

Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

_HOW_TO_SAY = (
    "says no inputs: give it `inputs`, a tuple of arrays, a dictionary by name or a function that returns one; or name "
    "a file of arrays, --inputs FILE.npz"
)
_KERNELS = ("nkitools.launch.kernel.KernelObject", "nkitools.customop.operator.Operator")
_AWS = ("nki", "neuronxcc")


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
            why = "" if not callable(found) else f": {name} is a function that the file imports, and no kernel"
            raise BadRequest(f"{self.path} has no {what} {name}{why}{_there(self._callables())}")
        return found  # type: ignore[no-any-return]

    def _callables(self) -> Iterator[str]:
        for name, value in list(vars(self.module).items()):
            if callable(value) and not name.startswith("_") and self._may_run(name, value):
                yield name

    def _may_run(self, name: str, value: object) -> bool:
        """Return whether a name of the file is a kernel, wherever it is defined, or a function of the file itself."""
        inner = innermost(value)
        if any(map(_is_kernel, layers(value))):
            return not _is_of_python(inner)
        if isinstance(inner, FunctionType):
            is_own = inner.__globals__ is vars(self.module)
            return is_own or self._defines(name) or self._makes(name, inner) or _is_pallas(inner)
        return type(inner).__module__ == self.module.__name__ or self._defines(name)

    def _defines(self, name: str) -> bool:
        """Return whether the file has ``def name``: a decorator may have put the function of another file there."""
        bound = bound_names(text_of(self.path)) or {}
        return isinstance(bound.get(name), (ast.FunctionDef, ast.AsyncFunctionDef))

    def _makes(self, name: str, function: FunctionType) -> bool:
        """Return whether the file has ``name = factory(...)``, of a factory that another file of the author's has."""
        bound = (bound_names(text_of(self.path)) or {}).get(name)
        is_made = isinstance(bound, ast.Assign) and isinstance(bound.value, ast.Call)
        return is_made and "<locals>" in function.__qualname__ and not is_installed(function.__code__.co_filename)

    def inputs(self, arrays: str | None = None, case: Mapping[str, Any] | None = None) -> Call:
        """Return the arguments of a kernel: arrays of an .npz file by name (``arr_0`` by position), else ``inputs``.

        Where ``inputs`` is a function of a case's names, the case is the first one of ``space``, with the values of
        ``case`` in place of its own. BadRequest where the file says none, and where ``inputs`` raises.
        """
        if arrays is not None:
            return _from_npz(arrays)
        said = getattr(self.module, "inputs", None)
        said = self.arguments if said is None else said
        if callable(said):
            said = self._called(said, self._first_case(said, case or {}))
        if isinstance(said, Mapping):
            return (), dict(said)
        if isinstance(said, (tuple, list)):
            return tuple(said), {}
        if said is not None:
            raise BadRequest(f"{self.path}: inputs is {type(said).__name__}; it must be a tuple or a dictionary")
        raise BadRequest(f"{self.path} {_HOW_TO_SAY}")

    def _called(self, function: Callable[..., Any], case: dict[str, Any]) -> Any:
        """Call a function of the author's with a case and return its result."""
        try:
            return function(**case)
        except Exception as error:  # the author's own
            raise BadRequest(_complaint(self.path, error, "has no inputs")) from error

    def _first_case(self, function: Callable[..., Any], case: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keywords for a function of a case: the values of the first case for its parameters."""
        parameters = parameters_of(function)
        case = with_generator(function, case)
        needed = [each.name for each in parameters if each.default is each.empty and each.kind not in VARIABLE]
        takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
        known = {each.name for each in parameters if each.kind not in VARIABLE}
        own = {name: value for name, value in case.items() if name in known}
        space = self.space
        if space is None or not (set(needed) - set(own) or takes_all):
            if set(needed) - set(own):
                raise BadRequest(
                    f"{self.path}: inputs takes {', '.join(needed)}, and the file has no `space` that says them"
                )
            return own
        first = {**self._first_of(space), **own}
        missing = [each for each in needed if each not in first]
        if missing:
            raise BadRequest(f"{self.path}: inputs takes {', '.join(missing)}, which its space does not have")
        return {name: value for name, value in first.items() if takes_all or name in known}

    def _first_of(self, space: Space) -> dict[str, Any]:
        try:
            is_drawn = any(map(is_strategy, choices_of(space).values()))
            return drawn_points(space, 1, 0)[0] if is_drawn else next(points_of(space))
        except (OSError, ValueError) as error:
            raise BadRequest(f"{self.path}: its space has no first case: {error}") from None

    def case_names(self) -> set[str]:
        """Return the parameters of the function that makes a case's arguments."""
        return {each.name for each in parameters_of(self.arguments) if each.kind not in VARIABLE} - {GENERATOR}

    @property
    def arguments(self) -> Callable[..., Any] | None:
        """The function that makes a case's arguments: ``arguments``, else ``inputs``; None if neither is a function."""
        for name in ("arguments", "inputs"):
            found = getattr(self.module, name, None)
            if callable(found):
                return found  # type: ignore[no-any-return]
        return None

    @property
    def reference(self) -> Any:
        """The right results: arrays, or a function of the arguments; None if the file has none."""
        return getattr(self.module, "reference", None)

    @property
    def expect(self) -> Mapping[str, Any]:
        """The right values of the kernel's tensors, by name; {} if the file has none."""
        return getattr(self.module, "expect", None) or {}

    @property
    def mutates(self) -> tuple[str, ...]:
        """The parameters whose arrays the kernel may change; empty where the file says none."""
        said = getattr(self.module, "mutates", ())
        return (said,) if isinstance(said, str) else tuple(said)

    @property
    def space(self) -> Space | None:
        """The cases of a sweep: a dictionary, or the path of a TOML file; None if the file has none."""
        return self._space("space")

    @property
    def settings(self) -> Space | None:
        """The variants of a kernel: ``settings``, else ``space`` where no function takes its names as a case."""
        return self._space("settings") or (self._space("space") if not self._takes_cases() else None)

    def _takes_cases(self) -> bool:
        return any(each.name != GENERATOR for each in parameters_of(self.arguments))

    def _space(self, name: str) -> Space | None:
        said = getattr(self.module, name, None)
        return self.path.parent / said if isinstance(said, (str, os.PathLike)) else said


@dataclass(frozen=True)
class Asked:
    """A kernel of a file with the arguments that it is called with."""

    file: KernelFile
    kernel: Kernel
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@contextmanager
def asked(
    file: str | Path,
    name: str,
    arrays: str | None = None,
    settings: Mapping[str, Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Iterator[Asked]:
    """Run a file and provide its kernel ``name`` with the arguments; what ``settings`` says holds until the end.

    ``settings``: values by name, of a keyword of the kernel, a parameter of ``inputs``, or a constant of the kernel's
    module or of the file. ``arrays``: see `KernelFile.inputs`; ``arguments``: all arguments by name, in their place.
    BadRequest for what the file does not have.
    """
    loaded, said = load(file), dict(settings or {})
    kernel = loaded.kernel(name)
    takes = set() if arrays is not None or arguments is not None else loaded.case_names()
    try:
        check_settings(loaded, kernel, said, takes)
    except ValueError as error:
        raise BadRequest(str(error)) from None
    rest = {each: value for each, value in said.items() if each not in takes or each in keywords_of(kernel, said)}
    with constants_set(kernel, rest, vars(loaded.module)):
        args, kwargs = loaded.inputs(arrays, said) if arguments is None else ((), dict(arguments))
        args, kwargs = with_keywords(kernel, args, kwargs, said)
        check_call(name, kernel, args, kwargs)
        yield Asked(loaded, kernel, args, kwargs)


def check_call(name: str, kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """BadRequest where the arguments do not fit the parameters of the kernel."""
    try:
        signature = inspect.signature(kernel)
    except (TypeError, ValueError):  # it has none that Python can tell
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        by_position = f"{len(args)} argument{'s' * (len(args) > 1)} by position"
        given = ", ".join([*([by_position] if args else []), *kwargs]) or "nothing"
        taken = ", ".join(signature.parameters) or "nothing"
        raise BadRequest(f"{name} takes {taken}, and is given {given}: {error}") from None


def check_settings(file: KernelFile, kernel: Kernel, settings: Mapping[str, Any], taken: Collection[str]) -> None:
    """ValueError for a setting that names nothing of a kernel or its file, or that cannot be what it replaces.

    ``taken``: names that the case has.
    """
    keywords = keywords_of(kernel, settings)
    defaults = {each.name: each.default for each in parameters_of(kernel)}
    for name, value in settings.items():
        if name in keywords:
            check_setting(name, value, defaults[name])
        if name in {*keywords, *taken}:
            continue
        homes = [each for each in (constants_of(kernel), vars(file.module)) if name in each]
        if not homes:
            raise ValueError(
                f"{name} is no parameter of the kernel or of `inputs`, and no constant of {file.path} or of the "
                "kernel's module"
            )
        for home in homes:
            check_setting(name, value, home[name])


def split(text: str) -> tuple[str, str]:
    """Return the two parts of FILE::KERNEL. BadRequest where the text has no kernel, or names no file."""
    file, separator, name = text.rpartition("::")
    if not separator or not name:
        raise BadRequest(f"{text} names no kernel: write FILE::KERNEL")
    if not file:
        raise BadRequest(f"no file is named before ::{name}: write FILE::KERNEL")
    if not Path(file).is_file():
        raise BadRequest(f"{file} is no file")
    return file, name


def seen(text: str, *, needs_inputs: bool) -> tuple[str, str]:
    """Return the two parts of FILE::KERNEL, where the file's text shows its kernel and its inputs; nothing is run.

    BadRequest as of `split`, where the file has no such kernel, and where it says no inputs though they are needed.
    """
    file, name = split(text)
    source = text_of(Path(file))
    if not source and Path(file).stat().st_size:
        raise BadRequest(f"{file} cannot be read: it is not text in UTF-8 or in the encoding that it declares")
    names = bound_names(source)
    if names is not None and name not in names:
        own = (each for each, by in names.items() if not each.startswith("_") and _may_be_function(by))
        raise BadRequest(f"{file} has no kernel {name}{_there(own)}")
    if names is not None and needs_inputs and not {"inputs", "arguments"} & set(names):
        raise BadRequest(f"{file} {_HOW_TO_SAY}")
    return file, name


def _may_be_function(statement: ast.stmt) -> bool:
    """Return True if a statement of a file's top level defines a function, or calls what may return one."""
    is_made = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
    return is_made or isinstance(statement, ast.FunctionDef)


def _there(names: Iterable[str]) -> str:
    """Return the end of a sentence about a name that a file lacks: the names that it has."""
    found = sorted(names)
    return f"; it has {', '.join(found)}" if found else ", nor any other"


def load(file: str | Path) -> KernelFile:
    """Run a Python file as pytest would import it, and return what it says.

    A file of a package is imported as its module, so that relative imports work. On ``sys.path`` come the folder above
    the package (or the file's own), the project's ``pythonpath`` of pytest, and last the project's folder and its
    ``src``. BadRequest where the file cannot be run, with the line that raised.
    """
    path = place_of(Path(file))
    if path.suffix != ".py":
        raise BadRequest(f"{file} is no Python file: its name must end in .py")
    root, name = module_place(path)
    forget_namesakes(root)
    extend_path(root, path)
    try:
        module = module_of(name, str(path)) if "." in name else run_alone(path, name)
    except (Exception, SystemExit) as error:  # the author's own
        raise BadRequest(_complaint(Path(file), error)) from error
    return KernelFile(Path(file), module)


def _is_kernel(value: object) -> bool:
    """Return whether an object is a kernel by its type: nkitools' own ones, a custom operator, one of AWS's."""
    kinds = {f"{each.__module__}.{each.__qualname__}" for each in type(value).__mro__}
    return bool(kinds & set(_KERNELS)) or type(value).__module__.partition(".")[0] in _AWS


def _is_of_python(function: object) -> bool:
    """Return whether a function is Python's own, which ``nki.jit(os.system)`` makes no kernel."""
    file = function.__code__.co_filename if isinstance(function, FunctionType) else ""
    in_python = file.startswith((f"{sysconfig.get_path('stdlib')}{os.sep}", "<frozen")) and "site-packages" not in file
    return isinstance(function, BuiltinFunctionType) or in_python


def _is_pallas(function: FunctionType) -> bool:
    """Return whether an imported function is a Pallas kernel of the author's own: JAX's own functions are none."""
    if "jax" not in sys.modules or is_installed(function.__code__.co_filename):
        return False
    from nkitools.pallas.detect_pallas import is_pallas_function

    return is_pallas_function(function)


def _from_npz(file: str) -> Call:
    import numpy as np

    if not is_zipfile(file):
        raise BadRequest(f"{file} is no .npz file of arrays, as np.savez writes them")
    try:
        with np.load(file, allow_pickle=False) as archive:
            is_run = "run.json" in archive.files
            arrays = {} if is_run else dict(archive)
    except (ValueError, TypeError, AttributeError, EOFError, BadZipFile) as error:
        raise BadRequest(f"{file} is no .npz file of arrays: {error}") from None
    if is_run:
        how = "save the arguments by np.savez(file, x=x, ...), by the names of the kernel's parameters"
        raise BadRequest(f"{file} is a saved run, no file of arrays: {how}")
    by_position = [arrays.pop(f"arr_{number}") for number in range(len(arrays)) if f"arr_{number}" in arrays]
    return tuple(by_position), arrays


def failure(error: Exception) -> str:
    """Return the error of an author's kernel with the line; '' if it passed no line of the author's."""
    if isinstance(error, KernelError):
        return str(error)
    place = _authors_place(error)
    return f"{type(error).__name__}: {error} ({place})" if place else ""


def _authors_place(error: BaseException) -> str:
    """Return the author's last line in a traceback, as file:line; '' if there is none."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not is_installed(each.filename)]
    own = [each for each in frames if not each.filename.startswith((f"{Path(__file__).parent}{os.sep}", "<"))]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""


def _complaint(file: Path, error: BaseException, what: str = "cannot be run") -> str:
    """Return why a file could not be run, with the last line of the author's that was reached."""
    if isinstance(error, BadRequest):
        return str(error)
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f"{error.filename or file}:{error.lineno}: {error.msg}"
    place = _authors_place(error) or str(file)
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, SystemExit):
        said = f"it ends the process ({said}): put what a script does below `if __name__ == '__main__':`"
    return f"{file} {what}: {said} ({place})"
