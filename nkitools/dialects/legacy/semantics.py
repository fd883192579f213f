"""The semantics of the legacy dialect, ``neuronxcc.nki`` of SDK 2.26, where they differ from ``nki``."""

from __future__ import annotations

from nkitools.chip.dialect_semantics import DialectSemantics

LEGACY = DialectSemantics(
    name="neuronxcc.nki",
    places_tiles=True,
    spills=True,
    unrolls_loops=False,
    has_known_issues=False,
    memory_names_as_text=True,
    takes_ranks=False,
    has_lnc_degrees=False,
    shows_call_form=False,  # its functions have call forms of their own
    writes_arguments=False,
    has_removed_arguments=True,
)
