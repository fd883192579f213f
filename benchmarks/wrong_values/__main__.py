"""Ask for an edit of each kernel whose values are wrong, and print how many are mended."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.wrong_values.cases import FAMILIES, cases
from benchmarks.wrong_values.door import Absent, check_door
from benchmarks.wrong_values.figures import COLUMNS, figures, outcome


def main(arguments: list[str]) -> int:
    """Print a line for each case, and the figures; exit code 2 where the command has no search."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wrong_values", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases, as FAMILY/NAME or NAME")
    parser.add_argument("--family", choices=FAMILIES, action="append", help="cases of this family; may be repeated")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds for each search")
    parser.add_argument("--list", type=Path, metavar="FILE", help="write a row for each case, separated by tabs")
    asked = parser.parse_args(arguments)
    try:
        check_door()
    except Absent as absent:
        print(absent, file=sys.stderr)
        return 2
    chosen = [each for each in cases() if not asked.family or each.family in asked.family]
    named = {*asked.names}
    chosen = [each for each in chosen if not named or {each.name, f"{each.family}/{each.name}"} & named]
    done = []
    with tempfile.TemporaryDirectory() as folder:
        for case in chosen:
            found = outcome(case, asked.seconds, Path(folder))
            done.append(found)
            print(found.row(), flush=True)
    if asked.list:
        rows = ["\t".join(COLUMNS), *(each.row() for each in done)]
        asked.list.write_text("\n".join(rows) + "\n", encoding="utf-8")
    print("\n" + "\n".join(figures(done)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
