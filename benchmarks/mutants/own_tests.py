"""The gallery's own tests, as `nkitools mutate` runs them: which of the usual mistakes they notice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import nkitools
from benchmarks.mutants.kernels import sources
from nkitools.sweeps.local_engine import LocalEngine
from nkitools.sweeps.mutate import mutate

GOAL = 0.9  # of the mistakes
ENDLESS = 300.0  # seconds


def gallery(root: Path, chosen: Sequence[str]) -> Iterator[tuple[Path, str, list[str]]]:
    """Yield each kernel's file and name, and the files of tests that import from that file."""
    for source in sources(root):
        if chosen and source.kernel not in chosen:
            continue
        path = root.joinpath("kernels", "nki", *source.kernel.split(".")).with_suffix(".py")
        imports = re.compile(rf"^from kernels\.nki\.{re.escape(source.kernel)} import ", re.MULTILINE)
        tests = [
            str(file)
            for file in sorted((root / "tests" / "kernels" / "nki").rglob("test_*.py"))
            if imports.search(file.read_text(encoding="utf-8"))
        ]
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(each) for each in node.decorator_list):
                yield path, node.name, tests


def own_tests(root: Path, chosen: Sequence[str], jobs: int) -> bool:
    """Print for each kernel how many mistakes its tests notice, and the others; return whether these are few enough."""
    nkitools.install_stand_in(prefer="builtin")
    noticed = total = 0
    for path, name, tests in gallery(root, chosen):
        tried = mutate(str(path), name, tests, LocalEngine(workers=jobs, timeout=ENDLESS))
        left = [each for each in tried if not each.killed]
        noticed, total = noticed + len(tried) - len(left), total + len(tried)
        print(f"{path.parent.name}/{name}: {len(tried) - len(left)} of {len(tried)}", flush=True)
        for each in left:
            print(f"    {each.line(str(path))}: {each.differs or 'no input was found that shows it'}")
    print(f"{noticed} of {total} mistakes ({noticed / max(1, total):.1%})")
    return noticed >= GOAL * total
