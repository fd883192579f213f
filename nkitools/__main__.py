"""The command ``nkitools``, also as ``python -m nkitools``. It imports nothing before Ctrl-C has its one line."""

from __future__ import annotations

import sys
from contextlib import nullcontext

from nkitools.output_streams import lasting_streams
from nkitools.platforms import refusal

_SERVERS = {"lsp", "mcp"}  # their stdout carries a protocol, and its end is theirs


def main(name: str | None = None) -> None:
    """Run the command line. Ctrl-C ends it with one line and exit code 130, also while its modules are imported.

    ``name``: of the command in its usage, as it was started where None.
    """
    if refusal():
        print(f"nkitools: {refusal()}", file=sys.stderr)
        sys.exit(2)
    with nullcontext() if set(sys.argv[1:2]) & _SERVERS else lasting_streams():
        try:
            from nkitools.cli import main as command_line

            command_line(prog_name=name)
        except KeyboardInterrupt:
            print("nkitools: interrupted", file=sys.stderr)
            sys.exit(130)


if __name__ == "__main__":
    main("python -m nkitools")
