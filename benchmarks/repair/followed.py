"""What a finding says of 120 mistakes, and what becomes of a kernel whose author follows its remedy to the letter.

``followed.toml`` has for each mistake the remedy that was read and the edit that was made from it, written down by
someone who saw the source and the message alone; no edits where the message does not say what to write.
"""

from __future__ import annotations

import difflib
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nkitools.lint.engine import lint
from nkitools.rules.finding import Finding, KernelError
from nkitools.serve.repaired_file import repaired
from nkitools.serve.simulated_file import answered
from nkitools.suggestions.lint_interface import Dialects
from tests.loading import loaded

HERE = Path(__file__).parent
_ORDER = ("edit", "error", "warning", "hint")  # an edit is looked for where no rule but these explains the values:
_OF_VALUES = ("PL211", "PL213")
_SECONDS = 120.0  # for the search of an edit, on a busy machine too
_NUMBERS = re.compile(r"[\d.]+")
Plain = dict[str, Any]


@dataclass(frozen=True)
class Mistake:
    """A wrong kernel: its text, the rules of which one should speak, and the lines of which one should be named."""

    name: str
    right: str
    text: str
    rules: tuple[str, ...]
    lines: frozenset[int]

    @property
    def stem(self) -> str:
        """The right kernel's file, without its ending."""
        return self.name.partition(".")[0]


@dataclass(frozen=True)
class Said:
    """What is said of a text. ``rule`` is ``edit`` if the values are wrong and an edit mends them."""

    rule: str
    severity: str
    line: int
    message: str
    remedy: str


@dataclass(frozen=True)
class Judged:
    """All that is said of a text, the most severe first, and whether its values are right."""

    said: tuple[Said, ...]
    agrees: bool

    @property
    def passes(self) -> bool:
        """Whether values are right and no error was found."""
        return self.agrees and not any(each.severity in ("error", "edit") for each in self.said)


def mistakes() -> list[Mistake]:
    """Return all, the first sixty and the others."""
    found = []
    lines = tomllib.loads((HERE / "lines_of_sixty.toml").read_text(encoding="utf-8"))
    for table in ("mistakes.toml", "sixty_more.toml"):
        for stem, every in tomllib.loads((HERE / table).read_text(encoding="utf-8")).items():
            right = _right(stem).read_text(encoding="utf-8")
            for name, each in every.items():
                text = right.replace(each["old"], each["new"], -1 if each.get("all") else 1)
                rules = tuple(each["rules"]) if "rules" in each else tuple(filter(None, [each["rule"]]))
                at = each.get("at", lines.get(stem, {}).get(name, []))
                found.append(Mistake(f"{stem}.{name}", right, text, rules, _lines(right, text, at)))
    return found


def _right(stem: str) -> Path:
    operator = HERE / "kernels" / f"{stem}.cpp"
    return operator if operator.exists() else operator.with_suffix(".py")


def _lines(right: str, wrong: str, at: list[str]) -> frozenset[int]:
    """Return the numbers of the lines that a mistake has changed, and of those that have a text of ``at``."""
    old, new = right.splitlines(), wrong.splitlines()
    changed = {
        line + 1
        for tag, _, _, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if tag != "equal"
        for line in range(first, last)
    }
    return frozenset(changed | {number for number, line in enumerate(new, 1) if any(each in line for each in at)})


def judged(stem: str, text: str, folder: Path) -> Judged:
    """Return what is said of a text in the place of a right kernel's."""
    if _right(stem).suffix == ".cpp":
        said, agrees = _of_operator(stem, text, folder)
    else:
        path = folder / f"{stem}_{abs(hash(text)):x}.py"
        path.write_text(text, encoding="utf-8")
        said, agrees = _of_jax(path) if "pallas_call" in text else _of_nki(path)
        if not agrees and not any(each.severity == "error" and each.rule not in _OF_VALUES for each in said):
            said += _edit(path)
    return Judged(tuple(sorted(said, key=lambda each: (_ORDER.index(each.severity), each.rule == "exception"))), agrees)


def _of_nki(path: Path) -> tuple[list[Said], bool]:
    found: list[Finding] = []

    def look(run: Any, this: Any) -> Plain:
        found.extend(run.findings)
        return {"agrees": _agrees(run.outputs, this.file.reference(*this.args), path)}

    answer = answered({"file": str(path), "kernel": "kernel"}, look)
    said = list(map(_said, found)) or _of_answer(answer, path)
    said += [_said(each) for each in lint([path], interface=Dialects()).findings]
    return list(dict.fromkeys(said)), bool(answer.get("agrees"))


def _of_answer(answer: Plain, path: Path) -> list[Said]:
    """Return what ended a run: a finding, or a bare exception."""
    names = ("rule", "severity", "line", "message", "remedy")
    said = [Said(*(each[name] for name in names)) for each in answer.get("findings", [])]
    if said or not answer.get("error"):
        return said
    frames = [re.match(rf"{re.escape(str(path))}:(\d+)", each) for each in answer.get("traceback", [])]
    line = next((int(each[1]) for each in reversed(frames) if each), 0)
    return [Said("exception", "error", line, answer["error"], "")]


def _of_jax(path: Path) -> tuple[list[Said], bool]:
    import nkitools.pallas

    module = loaded(path)
    try:
        run = nkitools.pallas.check(module.kernel, *module.inputs, reference=module.reference)
    except Exception as error:
        lines = [each.lineno or 0 for each in _frames(error) if each.filename == str(path)]
        return [Said("exception", "error", lines[-1] if lines else 0, f"{type(error).__name__}: {error}", "")], False
    return list(map(_said, run.findings)), _agrees(run.outputs, module.reference(*module.inputs), path)


def _frames(error: BaseException) -> list[Any]:
    import traceback

    return list(traceback.extract_tb(error.__traceback__))


def _of_operator(stem: str, text: str, folder: Path) -> tuple[list[Said], bool]:
    from nkitools.customop import load
    from nkitools.customop.errors import BuildError

    name = f"{stem}_{abs(hash(text)):x}"
    facts = loaded(HERE / "kernels" / f"{stem}.py")
    source, shapes = folder / f"{name}.cpp", folder / f"{name}_shape.cpp"
    source.write_text(text, encoding="utf-8")
    register = '#include "torchneuron/register.h"\n'
    definition = f'NEURON_LIBRARY({name}, m) {{\n  m.def("op", &shape, "kernel");\n}}\n'
    shapes.write_text(f'#include "{source.name}"\n{register}{definition}', encoding="utf-8")
    try:
        run = load(name, [source], [shapes], multicore=facts.multicore).ops["op"].run(*facts.inputs)
    except KernelError as error:
        return [_said(error.finding)], False
    except BuildError as error:
        return [_of_compiler(name, str(error))], False
    expected = facts.reference(*facts.inputs)
    rtol, atol = facts.tolerance
    agrees = run.outputs is not None and np.allclose(run.outputs, expected, rtol=rtol, atol=atol)
    return list(map(_said, run.findings)), bool(agrees)


def _of_compiler(name: str, text: str) -> Said:
    """Return what a compiler says of an operator, which may name a rule."""
    line, rule = re.search(rf"{name}\.cpp:(\d+)", text), re.search(r"\((CO\d+)\)", text)
    words = text.partition("nkitools: ")[2].partition("\n")[0]
    return Said(rule[1] if rule else "compiler", "error", int(line[1]) if line else 0, text, words)


def _agrees(outputs: Any, expected: Any, path: Path) -> bool:
    """Return whether outputs are the reference's within the tolerance that the kernel's file states."""
    if outputs is None:
        return False
    line = next(each for each in path.read_text().splitlines() if each.startswith("tolerance = "))
    rtol, atol = map(float, line.removeprefix("tolerance = ").strip("()").split(","))
    got, want = (each if isinstance(each, tuple) else (each,) for each in (outputs, expected))
    return len(got) == len(want) and all(
        np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=rtol, atol=atol)
        for one, other in zip(got, want, strict=True)
    )


def _edit(path: Path) -> list[Said]:
    """Return the edit that a failing comparison proposes; where it finds none, nothing."""
    answer = repaired({"file": str(path), "kernel": "kernel", "against": "reference", "seconds": _SECONDS})
    edit = answer.get("edit")
    if not edit:
        return []
    return [
        Said(
            "edit",
            "edit",
            edit["line"],
            f"with this edit the outputs are right ({answer['kind']})",
            "\n".join(edit["diff"]),
        )
    ]


def _said(finding: Finding) -> Said:
    return Said(finding.rule, finding.severity, finding.line, finding.message, finding.remedy)


@dataclass(frozen=True)
class Outcome:
    """What is said first of a mistake, and what became of the text after its remedy.

    ``after``: ``mends``, ``false`` (the text is still wrong), ``nothing`` (the remedy names no edit), ``unread`` (no
    edit was written down for this remedy).
    """

    mistake: Mistake
    said: Said | None
    after: str

    @property
    def found(self) -> bool:
        """Whether the expected rule speaks, or the right line is named."""
        return self.said is not None and (self.said.rule in (*self.mistake.rules, "edit") or self.at_line)

    @property
    def at_line(self) -> bool:
        """Whether one of the expected lines is named."""
        return self.said is not None and self.said.line in self.mistake.lines

    def row(self) -> str:
        """Name, rule, whether found and at the line, and what became of it, separated by tabs."""
        rule, line = ("none", 0) if self.said is None else (self.said.rule, self.said.line)
        sure = "found" if self.found else "missed"
        return "\t".join((self.mistake.name, rule, str(line), sure, "line" if self.at_line else "-", self.after))


def outcomes(chosen: list[Mistake], folder: Path) -> Iterator[Outcome]:
    """Yield what is said of each mistake, and what becomes of the text that was written down for it."""
    read = tomllib.loads((HERE / "followed.toml").read_text(encoding="utf-8"))
    for each in chosen:
        said = next(iter(judged(each.stem, each.text, folder).said), None)
        yield Outcome(each, said, after(each, said, read.get(each.name), folder))


def after(mistake: Mistake, said: Said | None, read: Plain | None, folder: Path) -> str:
    if said is None:
        return "nothing"
    if said.rule == "edit":
        lines = said.remedy.splitlines()
        out, into = ("\n".join(each[1:] for each in lines if each[0] == sign) for sign in "-+")
        read = {"remedy": said.remedy, "edits": [[out, into]]}
    if read is None or _plain(read["remedy"]) != _plain(said.remedy):
        return "unread"
    if not read["edits"]:
        return "nothing"
    text = after_edits(mistake.text, read["edits"])
    return "mends" if judged(mistake.stem, text, folder).passes else "false"


def after_edits(text: str, edits: list[list[str]]) -> str:
    """Return a text in which each first one of a pair is replaced by the second; ValueError where it is not there."""
    for old, new in edits:
        if old not in text:
            raise ValueError(f"not there: {old}")
        text = text.replace(old, new, 1)
    return text


def _plain(remedy: str) -> str:
    """Return a remedy without the paths of files and numbers, which differ from run to run."""
    return _NUMBERS.sub("#", re.sub(r"\S*/", "", remedy)).strip()


def figures(done: list[Outcome]) -> str:
    """Return the shares of all."""
    many = len(done) or 1
    counts = {
        "found": sum(each.found for each in done),
        "at the line": sum(each.at_line for each in done),
        **{name: sum(each.after == name for each in done) for name in ("mends", "false", "nothing", "unread")},
    }
    return "\n".join(f"{name}: {count} of {len(done)} ({count / many:.0%})" for name, count in counts.items())


def main(names: list[str]) -> int:
    """Print a row for each mistake, or for those that are named, and the figures; with ``-v`` what is said, too."""
    verbose, names = "-v" in names, [each for each in names if each != "-v"]
    chosen = [each for each in mistakes() if not names or each.name in names or each.stem in names]
    done = []
    with tempfile.TemporaryDirectory() as folder:
        for each in outcomes(chosen, Path(folder)):
            print(each.row(), flush=True)
            if verbose and each.said is not None:
                print(f"    {each.said.message}\n    R: {each.said.remedy}", flush=True)
            done.append(each)
    print("\n" + figures(done))
    return int(any(each.after == "false" for each in done))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
