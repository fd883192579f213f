"""Open files are judged as an editor has them, and leave nothing behind."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from nkitools.rules.catalogue import RULES
from nkitools.serve.open_files import OpenFiles
from tests import cases

BAD = RULES["NK103"].examples[0].bad
HELPER = "import nki.isa as nisa\n\n\ndef product(out, left, right):\n    nisa.nc_matmul(out, left, right, wrong=1)\n"
CALLER = "import nki\nfrom helper import product\n\n\n@nki.jit\ndef kernel(a, b, c):\n    product(a, b, c)\n"
REQUESTS = 1000 if cases.FULL else 150
MIB = 1 << 20


def test_the_text_counts_not_the_file(tmp_path: Path) -> None:
    """A file that is not saved is linted as it is in the editor, also where another open file calls it."""
    (tmp_path / "helper.py").write_text(HELPER.replace(", wrong=1", ""))
    files = OpenFiles()
    files.put(tmp_path / "caller.py", CALLER)
    assert [each.rule for each in files.put(tmp_path / "helper.py", HELPER).findings] == ["NK609"]
    text = CALLER + "    nothing = nki.language.lod(b)\n"
    assert [each.rule for each in files.put(tmp_path / "caller.py", text).findings] == ["NK607"]
    files.close(tmp_path / "caller.py")
    assert files.get(tmp_path / "caller.py") is None


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_a_thousand_changes_leave_the_process_as_it_was(tmp_path: Path) -> None:
    """Each change is another text; what is kept of earlier ones is bounded."""
    files = OpenFiles()
    for number in range(150):  # the bounded caches fill
        files.put(tmp_path / "kernel.py", f"{BAD}\nfilling = {number}\n")
    gc.collect()
    before = _resident()
    for number in range(REQUESTS):
        found = files.put(tmp_path / "kernel.py", f"{BAD}\nnumber = {number}\n")
        assert [each.rule for each in found.findings] == ["NK103"]
    gc.collect()
    assert _resident() - before < 5 * MIB
