"""Print the sum of what the test sessions of some passes have counted; exit with 1 if anything has failed.

Arguments: how many steps have failed, and a file of results of each pass (tests/session_results.py). Steps that failed
without a failed test count as failed tests.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(failed_steps: str, *files: str) -> int:
    """Print the line; return the exit code."""
    results = [json.loads(Path(file).read_text(encoding="utf-8")) for file in files if Path(file).is_file()]
    passed, failed = (sum(result[word] for result in results) for word in ("passed", "failed"))
    failed = max(failed, int(failed_steps))
    print(f"{passed} passed, {failed} failed, {sum(len(result['skipped']) for result in results)} skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
