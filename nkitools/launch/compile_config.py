"""The configuration of a kernel, for ``nki.jit(compile_config=, specialization_config=)``."""

from __future__ import annotations

from enum import Enum

from nkitools.facts.light_classes import dataclass
from nkitools.rules.finding import refuse


class AddressRotation(Enum):
    """May AWS's backend move a memory location for a better layout (``nki.compiler.AddressRotation``, NKI 0.7)."""

    AUTO = "auto"  # not one with a fixed address
    ENABLE = "enable"  # any
    DISABLE = "disable"  # none


@dataclass(frozen=True, kw_only=True)
class CompileConfig:
    """Options for AWS's compiler (``nki.compiler.CompileConfig``, NKI 0.7). Errors: NK609.

    They change no result in simulation. With ``non_ssa_legalization`` the chip may compute something else (NK621).
    Without ``nki_alloc_fallback`` tensors that do not fit into SBUF are an error (NK202). If no page has a default, it
    is the compiler's behaviour without the option: False.
    """

    address_rotation: AddressRotation = AddressRotation.AUTO  # may the backend move memory locations
    non_ssa_legalization: bool = False  # the backend legalizes memory locations that are written more than once
    dead_code_elim: bool = False  # the backend may remove memory locations that nothing reads
    barrier_check: bool = False  # compile with the checker of core barriers
    prefetch_auto: bool = False  # the compiler keeps a prefetch ring; excludes NKI_PREFETCH_RING_SIZE
    nki_alloc_fallback: bool = True  # the graph compiler allocates where NKI's own allocation fails

    def __post_init__(self) -> None:
        _check_fields(self)


@dataclass(frozen=True, kw_only=True)
class SpecializationConfig:
    """Options of the specialization of a kernel (``nki.compiler.SpecializationConfig``, NKI 0.7). Errors: NK609."""

    allow_nested_config_override: bool = False  # of the outermost kernel: its CompileConfig holds for nested kernels

    def __post_init__(self) -> None:
        _check_fields(self)


def _check_fields(config: CompileConfig | SpecializationConfig) -> None:
    """NK609: each field has the type of its default."""
    for name, value in vars(config).items():
        kind = type(getattr(type(config), name))
        if type(value) is not kind:
            wanted = "True or False" if kind is bool else f"a member of nki.compiler.{kind.__name__}"
            refuse("NK609", f"nki.compiler.{type(config).__name__}: {name} must be {wanted}, it is {value!r}")
