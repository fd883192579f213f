"""``make fuzz N=10000``: random programs two ways, which have to agree.

``--against`` names the other way: the oracle (the default), or careful, legacy, jnp (`tests.fuzz.comparisons`).
With ``--store`` a second call goes on where the first one was ended: a program is run once for each content of the
package, of the oracle and of this folder. A program that disagrees is made smaller and printed; what is mended goes
into ``tests/fuzz/corpus.jsonl``. Exit code 1 where a program disagrees.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

# Before JAX is imported: it compiles each small kernel for longer than that runs.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

import nkitools
from nkitools.sweeps.local_engine import LocalEngine
from nkitools.sweeps.store import COLUMNS, Store
from tests.fuzz.comparisons import NAMES, comparison, disagreement, judge, shrunk

ROOT = Path(__file__).parents[2]
_TOGETHER = 50  # programs of one task
_MOST_SHRUNK = 10


def content() -> str:
    """Return a hash of everything that decides what a program does."""
    digest = hashlib.sha256()
    for folder in ("nkitools", "tests/oracle", "tests/fuzz"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def key_of(code: str, against: str, seed: int) -> str:
    """Return the hash of a program in the store."""
    return hashlib.sha256(f"{code} {against} {seed}".encode()).hexdigest()[:32]


def judged(against: str, seeds: tuple[int, ...]) -> list[tuple[int, list[str], str, float]]:
    """Return what each program is made of, what it disagrees on, and its seconds."""
    nkitools.install_stand_in(prefer="builtin")
    other, rows = comparison(against), []
    for seed in seeds:
        began = time.perf_counter()
        program, said = judge(other, seed)
        rows.append((seed, other.names_of(program), said, time.perf_counter() - began))
    return rows


def row(code: str, against: str, seed: int, said: str, seconds: float) -> dict[str, Any]:
    """Return a row of the store."""
    found = dict.fromkeys(COLUMNS)
    texts = dict.fromkeys(("recipe", "versions", "chip"), "")
    return {
        **found, **texts, "hash": key_of(code, against, seed), "kernel": f"fuzz {against}", "case_key": str(seed),
        "code": code, "values_json": json.dumps({"seed": seed}), "outcome": "wrong" if said else "pass",
        "findings": "[]", "error": said, "seconds": seconds, "finished": time.time(),
    }  # fmt: skip


def fuzz(
    against: str, first: int, count: int, workers: int | None, path: str | None
) -> Iterator[tuple[list[str], str, int]]:
    """Yield of each program that is new what it is made of, what it disagrees on, and its seed."""
    code = content()
    keys = {key_of(code, against, seed): seed for seed in range(first, first + count)}
    with Store(path) as store:
        name = f"fuzz {against} {code} {first} {count}"
        store.begin(name, f"fuzz {against}", "", code, len(keys))
        done = store.done(keys)
        store.join(name, done)
        seeds = [seed for key, seed in keys.items() if key not in done]
        for ended in LocalEngine(workers=workers, timeout=600).run(partial(judged, against), _batches(seeds)):
            if ended.reason:
                raise SystemExit(f"programs {ended.task}: {ended.error}")
            store.add((row(code, against, seed, said, seconds) for seed, _, said, seconds in ended.result), name)
            for seed, names, said, _ in ended.result:
                yield names, said, seed


def _batches(seeds: list[int]) -> Iterator[tuple[int, ...]]:
    waiting = iter(seeds)
    return iter(lambda: tuple(islice(waiting, _TOGETHER)), ())


def main() -> int:
    """Run programs, and show those that disagree."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--against", choices=NAMES, default="oracle", help="the other way")
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--store", help="a file that keeps what is done")
    options = parser.parse_args()
    nkitools.install_stand_in(prefer="builtin")
    if options.against != "jnp":  # in the workers too, which are forked; JAX has threads, which a fork would leave
        comparison(options.against)
    counted: Counter[str] = Counter()
    wrong: list[tuple[int, str]] = []
    began, programs = time.monotonic(), 0
    for names, said, seed in fuzz(options.against, options.seed, options.programs, options.workers, options.store):
        programs += 1
        counted.update(names)
        if said:
            wrong.append((seed, said))
            print(f"program {seed}: {said}", flush=True)
        if programs % 5000 == 0:
            print(f"{programs} programs, {len(wrong)} disagree, {time.monotonic() - began:.0f} s", flush=True)
    seconds = time.monotonic() - began
    for seed, _ in wrong[:_MOST_SHRUNK]:
        show_smaller(comparison(options.against), seed)
    print(f"{programs} programs of {sum(counted.values())} instructions in {seconds:.0f} s, {len(wrong)} disagree")
    print(", ".join(f"{name} {count}" for name, count in counted.most_common()))
    return int(bool(wrong))


def show_smaller(against: Any, seed: int) -> None:
    """Print the smallest program that still disagrees, and as a kernel, where it is one."""
    program = shrunk(against, against.program_of(seed))
    print(f"program {seed}, smaller: {disagreement(against, program)}\n{json.dumps(program)}")
    if "steps" in program:
        from tests.fuzz.kernel import text_of

        print(text_of(program))


if __name__ == "__main__":
    sys.exit(main())
