"""An operator before it is called: its compiled library, its kernel's place in it, the settings of a call."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from nkitools.customop.abi import MAX_CORES, Call
from nkitools.customop.build import Built, contents_of
from nkitools.customop.cache import digest
from nkitools.customop.errors import BuildError
from nkitools.customop.process import Worker, forget, worker_held
from nkitools.customop.sources import parameter_names
from nkitools.customop.symbols import Place, Symbols
from nkitools.facts.options import OPTIONS
from nkitools.processes import Lost
from nkitools.record.watch.watching import watched_bytes

ORDERS = ("forward", "reverse")
ISOLATIONS = ("process", "none")
DEFAULT_TIMEOUT = 30.0
DEFAULT_MEMORY = 4 << 30
_HOST_STACK = 8192  # beyond that the guide asks for STACK_SIZE


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a call; see `Operator.run`."""

    timeout: float = DEFAULT_TIMEOUT
    rules: str = "report"
    order: str | int | Sequence[int] = "forward"
    threads: bool = False
    isolation: str = "process"
    memory_limit: int = DEFAULT_MEMORY
    debug: bool = False

    def __post_init__(self) -> None:
        _one_of("rules", self.rules, OPTIONS["rules"].choices)
        _one_of("isolation", self.isolation, ISOLATIONS)
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, int | float) or self.timeout < 0:
            raise ValueError(f"timeout: seconds, or 0 for none; it is {self.timeout!r}")
        if self.memory_limit < 0:
            raise ValueError(f"memory_limit: bytes, or 0 for none; it is {self.memory_limit!r}")
        self.cores(multicore=True)

    def cores(self, multicore: bool) -> list[int]:
        """Return the cores in the order in which they run."""
        if not multicore:
            return [0]
        order = self.order
        if isinstance(order, str):
            _one_of("order", order, ORDERS)
            return list(range(MAX_CORES)) if order == "forward" else list(range(MAX_CORES))[::-1]
        if isinstance(order, int):
            return random.Random(order).sample(range(MAX_CORES), MAX_CORES)
        if sorted(order) != list(range(MAX_CORES)):
            raise ValueError(f"order: 'forward', 'reverse', a seed, or the cores 0..7 in some order; it is {order!r}")
        return list(order)


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name}: must be one of {', '.join(known)}, it is {value!r}")


@dataclass(eq=False, repr=False)
class CompiledLibrary:
    """A compiled library of operators."""

    name: str  # that of NEURON_LIBRARY, under which torch finds the operators
    path: str  # the file that `load_library` takes, in the cache unless a build directory was asked for
    built: Built
    multicore: bool
    stack_size: int | None


@dataclass(eq=False, repr=False)
class CompiledOperator:
    """One operator of a compiled library. Pairs are those of the shape function and of the kernel."""

    library: CompiledLibrary
    name: str
    kernel: str  # the name of its function
    numbers: tuple[int, int]  # in the two halves of the library
    signatures: tuple[str, str]  # letters of the parameters, the result's first
    addresses: tuple[int, int]
    symbols: Symbols
    shape_symbols: Symbols
    # Shapes of arguments: the last thing that a call with such shapes does is to free its blocks.
    ends_freeing: set[tuple[tuple[int, ...], ...]] = field(default_factory=set)
    # Shapes of arguments: a call with such shapes has been made between guard pages.
    looked_beyond: set[tuple[tuple[int, ...], ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.__name__ = self.name
        self.shape_signature, self.signature = self.signatures

    def prepare(self, call: Call, settings: Settings, cores: Sequence[int]) -> None:
        """Write into ``call`` what is to run, and how."""
        call.op, call.kernel = self.numbers
        call.cores = len(cores)
        call.traced = watched_bytes() > 0
        call.order[: len(cores)] = cores
        call.multicore = self.library.multicore
        call.threads = settings.threads and self.library.multicore
        call.stack_limit = max(_HOST_STACK, self.library.stack_size or 0)

    @contextmanager
    def worker(self) -> Iterator[Worker]:
        """Hold the worker of the library for one call. BuildError if it is killed from outside."""
        with worker_held(self.library.built.shape, self.library.built.compute) as worker:
            try:
                yield worker
            except Lost:
                forget(worker)
                raise BuildError(
                    f"the process that runs operator `{self.name}` has been ended from outside; the next call starts "
                    "another"
                ) from None
            except BaseException:
                forget(worker)  # it was interrupted, and must not go on with its work
                raise

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of the kernel's parameters; () where its source does not say them plainly."""
        return parameter_names(self.library.built.recipe.compute, self.kernel, len(self.signature) - 1)

    @property
    def content_key(self) -> str:
        """Return a digest of name, settings and compiled library, which is equal for operators that do the same."""
        library = self.library
        settings = f"{self.name} {library.multicore} {library.stack_size}"
        return digest([settings, *contents_of((library.built.shape, library.built.compute))])

    def kernel_place(self) -> Place:
        """Return the place of the kernel's definition."""
        return self.symbols.author_place([self.addresses[1]]) or Place(
            self.library.built.recipe.compute[0], 0, self.name
        )

    def shape_place(self) -> Place:
        """Return the place of the shape function's definition."""
        return self.shape_symbols.author_place([self.addresses[0]]) or Place(self.library.built.recipe.shape[0], 0)

    def __repr__(self) -> str:
        return f"<custom operator {self.library.name}.{self.name}>"
