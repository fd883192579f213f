"""The facts of a finding: values by name, which fixes, reports and agents read in place of its message.

A name means the same in every rule. Those that a rule may have beside the `COMMON` ones stand in its ``rule.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping

# Of a finding about a tensor (of several the first), about a call, and of the legacy dialect.
COMMON: Mapping[str, tuple[type, str]] = {
    "tensor": (str, "the author's name of the tensor, with the indices of its part where the finding is about one"),
    "memory": (str, "the memory that it lies in: `HBM`, `shared HBM`, `private HBM`, `SBUF` or `PSUM`"),
    "dtype": (str, "its dtype"),
    "shape": (tuple, "its shape"),
    "allocated_at": (str, "the file and line where it was made"),
    "instruction": (str, "the function of NKI that is called, without its module"),
    "code": (str, "AWS's code of the error, in the legacy dialect"),
}
KNOWN: Mapping[str, tuple[type, str]] = {
    **COMMON,
    "argument": (str, "the parameter of the call"),
    "axis": (int, "the dimension, from 0"),
    "cause": (str, "why elements are missing: `last tile`, `block`, `gaps`, `nothing writes`, `one program`, ..."),
    "elements": (int, "how many elements there are"),
    "ended_by": (str, "what has ended a call: `time`, `forks`, `memory` or `processes`"),
    "expression": (str, "the expression, as it is written"),
    "extent": (int, "how many elements, bytes or columns there are where a limit is"),
    "first_index": (int, "the first index that is asked for"),
    "last_index": (int, "the last index that is asked for"),
    "limit": (int, "how many there may be"),
    "loop_line": (int, "the line of the loop"),
    "memories": (tuple, "the memories that the operand may lie in"),
    "name": (str, "the name of NKI that is imported, with its module"),
    "partitions": (int, "how many partitions there are"),
    "seconds": (float, "the time after which a call is ended"),
    "seen": (str, "when it was found: at the `end` of the call"),
    "spilled_bytes": (int, "the bytes that are foreseen to move to HBM and back for want of room"),
    "unwritten": (int, "how many of its elements were never written"),
}
