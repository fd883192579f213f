"""Run the repair loop over all mistakes and print how many are mended (or over those that are named)."""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path

from benchmarks.repair.loop import Repair, repaired

HERE = Path(__file__).parent


def mistakes() -> dict[str, tuple[str, str]]:
    """Return the text of each mistake, and the rule that should speak."""
    found = {}
    with open(HERE / "mistakes.toml", "rb") as file:
        for kernel, every in tomllib.load(file).items():
            right = (HERE / "kernels" / f"{kernel}.py").read_text(encoding="utf-8")
            for name, each in every.items():
                times = -1 if each.get("all") else 1
                found[f"{kernel}.{name}"] = right.replace(each["old"], each["new"], times), each["rule"]
    return found


def main(names: list[str]) -> int:
    """Print a line for each mistake, and the sums; exit code 1 where a text was made worse."""
    done = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, rule) in mistakes().items():
            if not names or name in names:
                one = repaired(name.replace(".", "_"), text, Path(folder))
                _show(name, rule, one)
                done.append((rule, one))
    every = [one for _, one in done]
    worse = sum(each.is_worse for each in every)
    spoke = sum(rule in {each["rule"] for each in one.before.findings} for rule, one in done if rule)
    suggested = [each for each in every if each.has_remedy]
    print(f"\nmended: {_share(every)} of all, {_share(suggested)} of those with a suggested edit")
    print(f"made worse: {worse}; the expected rule spoke for {spoke} of {sum(bool(rule) for rule, _ in done)}")
    passing = sum(each.before.passes for each in every)
    if passing:
        print(f"agree with their reference as they are: {passing}")
    return int(worse > 0)


def _show(name: str, rule: str, one: Repair) -> None:
    state = "mended" if one.is_mended else "worse" if one.is_worse else "not mended" if one.applied else "-"
    rules = ",".join(dict.fromkeys(each["rule"] for each in one.before.findings)) or "none"
    print(f"{name:34} {state:10} {rule or 'values':6} {rules:20} {'; '.join(one.applied)}", flush=True)


def _share(done: list[Repair]) -> str:
    mended = sum(each.is_mended for each in done)
    return f"{mended} of {len(done)} ({mended / len(done):.0%})" if done else "0 of 0"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
