"""The semantics of a dialect of NKI: one frozen record a dialect."""

from __future__ import annotations

from nkitools.facts.light_classes import dataclass


@dataclass(frozen=True, kw_only=True)
class DialectSemantics:
    """The behaviour of instructions, launches and rules under a dialect; the defaults are the modern dialect's."""

    name: str = "nki"  # the module that kernels of the dialect import
    places_tiles: bool = False  # the compiler places tiles where the accesses to them may begin
    spills: bool = False  # the compiler moves to HBM what does not fit on the chip
    has_known_issues: bool = True  # the limits of release notes since NKI 0.3 hold: divide, skipping, private results
    unrolls_loops: bool = True  # Python's loops and those over nl's ranges are unrolled when the kernel is traced
    memory_names_as_text: bool = False  # buffer="sbuf" is a memory, as nl.sbuf is
    takes_ranks: bool = True  # kernels may communicate between ranks
    shows_call_form: bool = True  # findings about arguments show the instruction's own call form
    has_lnc_degrees: bool = True  # the grid of a launch is an LNC degree
    writes_arguments: bool = True  # a kernel may write into any argument (NK409), not only where it is declared (NK406)
    has_removed_arguments: bool = False  # arguments that NKI has removed still work


MODERN = DialectSemantics()  # also of plain functions, which no dialect has decorated
