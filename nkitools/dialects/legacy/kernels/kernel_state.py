"""What the running kernel was declared with, and what only its end can judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from nkitools.chip.tensor import NkiTensor
from nkitools.launch.kernel import KernelObject

# Switches of nki.compiler's decorators.
FORCE_AUTO_ALLOC = "force_auto_alloc"
SKIP_MIDDLE_END = "skip_middle_end_transformations"
STACK_ALLOCATOR = "enable_stack_allocator"

# Undocumented, but public kernels pass them to nki.jit as experimental_flags.
SKIP_SHARED_HBM_CHECK = "skip-non-top-level-shared-hbm-check"
SKIP_MUTABLE_RETURN_CHECK = "skip-mutable-return-check"


@dataclass
class Form:
    """``switches``: how the kernel was declared. ``declared``: the tensors that it has created with nl.ndarray and its
    kin (of automatic ones on chip the first of each site, as a loop may make more than there is memory for), and
    ``created`` the ids of all their storages. ``assigned``: storages of calls' results that were assigned, but could
    not be written in place. ``sites``: those of automatic tensors; ``placed``: the partition's bytes of each storage
    that was placed by hand. ``unbiased``: positions of nisa.activation calls without a bias. ``code``: the kernel's
    own; ``began``: the instructions of the record when it began. ``loops``: how many affine ranges run;
    ``updates``: the instructions in them that update their destination, and how; ``told``: the storages and sites of
    dependences that were reported, and the places of masks joined by ``and``; ``traces``: of the loops that run
    (`loops`); ``joining``: a mask that waits for the right side of its ``and`` (`joining`).
    """

    switches: frozenset[str] = frozenset()
    code: CodeType | None = None
    began: int = 0
    declared: list[NkiTensor] = field(default_factory=list)
    created: set[int] = field(default_factory=set)
    sites: set[int] = field(default_factory=set)
    placed: dict[int, int] = field(default_factory=dict)
    assigned: set[int] = field(default_factory=set)
    unbiased: set[int] = field(default_factory=set)
    loops: int = 0
    updates: dict[int, int] = field(default_factory=dict)
    told: set[tuple[int, int]] = field(default_factory=set)
    traces: list[Any] = field(default_factory=list)
    joining: Any = None

    @property
    def automatic(self) -> bool:
        """Whether direct allocation is ignored."""
        return FORCE_AUTO_ALLOC in self.switches

    def physical_bytes(self, storage: int) -> int:
        """Bytes of a partition of the memory in which a storage was placed by hand; 0 for others."""
        return self.placed.get(storage, 0)

    def declare(self, tensor: NkiTensor) -> None:
        """The kernel has created a tensor."""
        storage = tensor.storage
        self.created.add(storage.id)
        if storage.physical is not None:
            self.placed[storage.id] = storage.partition_bytes
        elif storage.on_chip:
            if storage.site in self.sites:
                return
            self.sites.add(storage.site)
        self.declared.append(tensor)


FORM: ContextVar[Form | None] = ContextVar("nkitools_legacy_form", default=None)

# Called where a tensor of the dialect is made, if anybody wants to know.
TENSOR_MADE: ContextVar[Callable[[], None] | None] = ContextVar("nkitools_legacy_tensor_made", default=None)


def form_of() -> Form:
    """Return the form of the running kernel; one of no consequence outside of any, and in functions run as they are."""
    return FORM.get() or Form()


def experimental(flags: Any) -> frozenset[str]:
    """``experimental_flags=`` of nki.jit: names in a string, separated by commas, or in a list."""
    names: Iterable[Any] = flags.split(",") if isinstance(flags, str) else flags or ()
    return frozenset(str(name).strip() for name in names)


def switched(function: Any, name: str) -> Any:
    """Return a kernel or function like ``function``, with a switch; what jit makes of it keeps the switch."""
    if isinstance(function, KernelObject):
        switches = switches_of(function.function, function.options) | {name}
        return type(function)(function.function, function.grid, **{**function.options, "switches": switches})
    if isinstance(function, FunctionType):
        copied = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        copied.__kwdefaults__ = function.__kwdefaults__
        copied.__annotations__ = function.__annotations__
        copied.__dict__.update(function.__dict__)
        copied.__qualname__, copied.__doc__, copied.__module__ = (
            function.__qualname__,
            function.__doc__,
            function.__module__,
        )
        function = copied
    function.nki_switches = getattr(function, "nki_switches", frozenset()) | {name}
    return function


def switches_of(function: Any, options: dict[str, Any]) -> frozenset[str]:
    """Return the switches of nki.compiler's decorators and experimental flags that a kernel was declared with."""
    marks: frozenset[str] = getattr(function, "nki_switches", frozenset())
    switches: frozenset[str] = options.get("switches", frozenset())
    return marks | switches | experimental(options.get("experimental_flags"))
