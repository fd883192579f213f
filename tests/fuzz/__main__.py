"""``make fuzz N=10000``: random programs in the simulator, beside an oracle that knows nothing of it.

With ``--store`` a second call goes on where the first one was ended: a program is run once for each content of the
package, of the oracle and of this folder. A program that disagrees is made smaller and printed; what is mended goes
into ``tests/fuzz/corpus``. Exit code 1 where a program disagrees.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import nkitools
from nkitools.sweeps.local_engine import LocalEngine
from nkitools.sweeps.store import COLUMNS, Store

ROOT = Path(__file__).parents[2]
_TOGETHER = 50  # programs of one task


def content() -> str:
    """A hash of everything that decides what a program does."""
    digest = hashlib.sha256()
    for folder in ("nkitools", "tests/oracle", "tests/fuzz"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def key_of(code: str, seed: int) -> str:
    """The hash of a program in the store."""
    return hashlib.sha256(f"{code} {seed}".encode()).hexdigest()[:32]


def judged(seeds: tuple[int, ...]) -> list[tuple[int, list[str], str, float]]:
    """The instructions of each program, what it disagrees on, and its seconds."""
    from tests.fuzz.judge import judge

    rows = []
    for seed in seeds:
        began = time.perf_counter()
        program, said = judge(seed)
        rows.append((seed, [each["instruction"] for each in program["steps"]], said, time.perf_counter() - began))
    return rows


def row(code: str, seed: int, said: str, seconds: float) -> dict[str, Any]:
    """A row of the store."""
    found = dict.fromkeys(COLUMNS)
    texts = dict.fromkeys(("recipe", "versions", "chip"), "")
    return {
        **found, **texts, "hash": key_of(code, seed), "kernel": "fuzz", "case_key": str(seed), "code": code,
        "values_json": json.dumps({"seed": seed}), "outcome": "wrong" if said else "pass", "findings": "[]",
        "error": said, "seconds": seconds, "finished": time.time(),
    }  # fmt: skip


def fuzz(first: int, count: int, workers: int | None, path: str | None) -> Iterator[tuple[list[str], str, int]]:
    """Yield of each program that is new its instructions, what it disagrees on, and its seed."""
    code = content()
    keys = {key_of(code, seed): seed for seed in range(first, first + count)}
    with Store(path) as store:
        store.begin(f"fuzz {code} {first} {count}", "fuzz", "", code, list(keys))
        done = store.done(keys)
        seeds = [seed for key, seed in keys.items() if key not in done]
        for ended in LocalEngine(workers=workers, timeout=600).run(judged, _batches(seeds)):
            if ended.reason:
                raise SystemExit(f"programs {ended.task}: {ended.error}")
            store.add(row(code, seed, said, seconds) for seed, _, said, seconds in ended.result)
            for seed, instructions, said, _ in ended.result:
                yield instructions, said, seed


def _batches(seeds: list[int]) -> Iterator[tuple[int, ...]]:
    waiting = iter(seeds)
    return iter(lambda: tuple(islice(waiting, _TOGETHER)), ())


def main() -> int:
    """Run programs, and show those that disagree."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--store", help="a file that keeps what is done")
    options = parser.parse_args()
    nkitools.install_stand_in(prefer="builtin")
    import tests.fuzz.judge as judge  # in the workers too, which are forked

    counted: Counter[str] = Counter()
    wrong: list[tuple[int, str]] = []
    began, programs = time.monotonic(), 0
    for instructions, said, seed in fuzz(options.seed, options.programs, options.workers, options.store):
        programs += 1
        counted.update(instructions)
        if said:
            wrong.append((seed, said))
            print(f"program {seed}: {said}", flush=True)
        if programs % 5000 == 0:
            print(f"{programs} programs, {len(wrong)} disagree, {time.monotonic() - began:.0f} s", flush=True)
    for seed, _ in wrong[:10]:
        program = judge.shrunk(judge.program_of(seed))
        print(f"program {seed}, smaller: {judge.disagreement(program)}\n{json.dumps(program)}")
    seconds = time.monotonic() - began
    print(f"{programs} programs of {sum(counted.values())} instructions in {seconds:.0f} s, {len(wrong)} disagree")
    print(", ".join(f"{name} {count}" for name, count in counted.most_common()))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
