"""The cheat sheet: limits of each chip, and the functions of nl and nisa with the first sentence of each.

``python -m docs.generate_cheat_sheet`` prints it; the Sphinx build writes it beside the other reference pages.
"""

from __future__ import annotations

import inspect
import re

from docs.generate_instructions import names
from nkitools.dialects.modern import isa, language
from nkitools.facts.generations import FIELDS, TABLES

INTRODUCTION = """\
# Cheat sheet

```python
import nki
import nki.isa as nisa
import nki.language as nl
```

A tile is `[partitions, elements]`: at most 128 partitions. Load from HBM (`nl.load`, `nisa.dma_copy`), compute in SBUF,
multiply into PSUM, copy out of PSUM, store. All limits: [chips](chips.md).
"""


def cheat_sheet() -> str:
    """Return the whole page in Markdown."""
    return "\n".join([INTRODUCTION, *_limits(), *_instructions(), *_functions()])


def _limits() -> list[str]:
    """Return the table of the limits that kernels are written to."""
    wanted = [
        name for name in FIELDS if "fmax" in name or name.endswith(("partitions", "partition_bytes", "bank_bytes"))
    ]
    heads = [table.name for table in TABLES]
    lines = ["## Limits", "", "| limit | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    lines += [f"| `{name}` | " + " | ".join(str(getattr(table, name)) for table in TABLES) + " |" for name in wanted]
    return [*lines, ""]


def _instructions() -> list[str]:
    rows = [f"| [nisa.{name}](instructions/{name}.md) | {_sentence(getattr(isa, name))} |" for name in names()]
    return ["## Instructions", "", "| | |", "|---|---|", *rows, ""]


def _functions() -> list[str]:
    found = ((name, getattr(language, name, None)) for name in sorted(language.__all__))
    rows = [f"| `nl.{name}` | {_sentence(each)} |" for name, each in found if inspect.isfunction(each) and each.__doc__]
    return ["## Functions of nl", "", "| | |", "|---|---|", *rows, ""]


def _sentence(found: object) -> str:
    """Return the first sentence of a docstring, fit for a table."""
    text = re.sub(r"\s+", " ", inspect.getdoc(found) or "").replace("``", "`")
    return re.split(r"(?<=[.:;])\s", text)[0].rstrip(":;").replace("|", "\\|")


if __name__ == "__main__":
    print(cheat_sheet())
