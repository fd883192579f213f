"""Libraries of custom operators: built, loaded, called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from nkitools.customop.build import Built, Recipe, Registered, build
from nkitools.customop.compiled_operator import CompiledLibrary
from nkitools.customop.errors import BuildError
from nkitools.customop.operator import Operator
from nkitools.customop.symbols import Symbols

_MOST_OPERATORS = 10  # functions of a library (custom C++ operators guide, Implementing an operator in C++)
_STACK_FLAG = "-DSTACK_SIZE="
_MOST_STACK = 400 * 1024


class Library(CompiledLibrary):
    """The operators of one library, by attribute (``library.giou``) or by name (``library.ops["giou"]``).

    If an operator has the name of a library attribute, only ``ops`` has it. An unknown name is an AttributeError.
    ``name`` is that of NEURON_LIBRARY, its name in torch; ``path`` is its file: the one that `load_library` takes if
    there is a build directory, else a file in the cache, which `load_library` refuses. ``stack_size``: that of
    ``-DSTACK_SIZE``, in bytes, None without one.
    """

    def __init__(self, built: Built, path: str, *, multicore: bool, stack_size: int | None) -> None:
        registered, kernels = built.operators, built.kernels
        _judge_names(built.recipe.name, registered)
        super().__init__(registered[0].library, path, built, multicore, stack_size)
        symbols, shape_symbols = Symbols(built.compute, built.sources), Symbols(built.shape, built.sources)
        self.ops: dict[str, Operator] = {}
        for number, each in enumerate(registered):
            kernel = next(index for index, known in enumerate(kernels) if known.name == each.kernel)
            self.ops[each.name] = Operator(
                self,
                each.name,
                kernel=each.kernel,
                numbers=(number, kernel),
                signatures=(each.signature, kernels[kernel].signature),
                addresses=(each.address, kernels[kernel].address),
                symbols=symbols,
                shape_symbols=shape_symbols,
            )

    def __getattr__(self, name: str) -> Operator:
        ops: dict[str, Operator] = self.__dict__.get("ops", {})
        if name in ops:
            return ops[name]
        raise AttributeError(
            f"library `{self.__dict__.get('name', '')}` has no operator {name!r}; it has {', '.join(ops)}"
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.ops})

    def __repr__(self) -> str:
        mode = "multicore" if self.multicore else "single core"
        return f"<custom operators {self.name}: {', '.join(self.ops)} ({mode})>"


def load(
    name: str,
    compute_srcs: Sequence[str | os.PathLike[str]],
    shape_srcs: Sequence[str | os.PathLike[str]],
    build_directory: str | os.PathLike[str] | None = None,
    multicore: bool = False,
    verbose: bool = False,
    extra_cflags: Sequence[str] = (),
) -> Library:
    """Build a library of custom operators for this host and load it: the call of AWS's ``custom_op.load``.

    ``name``: of the library's file; ``compute_srcs``, ``shape_srcs``: the sources of kernels and of shape functions,
    which register the operators (NEURON_LIBRARY). ``build_directory``: also leave ``lib<name>.so`` there, for
    `load_library`. ``multicore``: all its operators run on the eight GpSimd cores. ``extra_cflags``: flags of the
    compiler; ``-DSTACK_SIZE=n``: the bytes of stack that a kernel needs, at most 409600. ``verbose``: print the
    compiler's path and messages, if sources are compiled. Unchanged sources are not compiled again.

    BuildError for sources that are missing or do not compile, a library without operators or with more than 10, two
    operators of one name, several NEURON_LIBRARY, kernels without a definition, names that AWS refuses, a larger stack,
    and without a compiler. Mistakes in a kernel's signature (CO112) are reported when it is called.
    """
    if not isinstance(name, str) or not name or os.sep in name:
        raise BuildError(f"a library needs a file name, it is given {name!r}")
    if name == "builtin":
        raise BuildError("a library cannot be called `builtin`: AWS reserves that name")
    recipe = Recipe(name, _paths("compute_srcs", compute_srcs), _paths("shape_srcs", shape_srcs), _flags(extra_cflags))
    stack = _stack_size(recipe.flags)
    built = build(recipe, verbose=verbose)
    library = Library(built, built.compute, multicore=bool(multicore), stack_size=stack)
    if build_directory is not None:
        from nkitools.customop.files import write_library

        library.path = write_library(built, Path(build_directory), multicore=bool(multicore))
    return library


def load_library(path: str | os.PathLike[str]) -> Library:
    """Load a library that `load` has left in its build directory: ``load_library("build/libgiou.so")``.

    BuildError if there is none, if the files beside it are missing, or if it was built for a device, which no host
    runs. A library of another version of nkitools may be refused at its first call only.
    """
    from nkitools.customop.files import read_library

    built, multicore = read_library(Path(path))
    return Library(built, os.fspath(path), multicore=multicore, stack_size=_stack_size(built.recipe.flags))


def _paths(what: str, given: Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    if isinstance(given, str | os.PathLike) or not given:
        raise BuildError(f"{what} must be a list of source files, it is {given!r}")
    paths = tuple(os.path.abspath(os.fspath(path)) for path in given)
    missing = [path for path in paths if not os.path.isfile(path)]
    if missing:
        raise BuildError(f"{what}: there is no file {missing[0]}")
    return paths


def _flags(given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(flag, str) for flag in given):
        raise BuildError(f"extra_cflags must be a list of flags, it is {given!r}")
    return tuple(given)


def _stack_size(flags: Sequence[str]) -> int | None:
    sizes = [flag.removeprefix(_STACK_FLAG) for flag in flags if flag.startswith(_STACK_FLAG)]
    if not sizes:
        return None
    if not sizes[-1].isdigit():
        raise BuildError(f"{_STACK_FLAG}{sizes[-1]}: a stack size is a number of bytes")
    if int(sizes[-1]) > _MOST_STACK:
        raise BuildError(f"{_STACK_FLAG}{sizes[-1]}: 400 KB ({_MOST_STACK} bytes) is the largest stack (CO114)")
    return int(sizes[-1])


def _judge_names(name: str, registered: Sequence[Registered]) -> None:
    if not registered:
        raise BuildError(
            f"the shape sources of {name} register no operators: they need NEURON_LIBRARY(name, m) with an m.def(...)"
        )
    libraries = sorted({each.library for each in registered})
    if len(libraries) > 1:
        raise BuildError(f"{name} has several NEURON_LIBRARY: {', '.join(libraries)}; a model can have one library")
    names = [each.name for each in registered]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise BuildError(f"the library {name} registers two operators of the name `{twice}`")
    if len(names) > _MOST_OPERATORS:
        raise BuildError(f"the library {name} registers {len(names)} operators; {_MOST_OPERATORS} are the most")
