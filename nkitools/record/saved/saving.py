"""A run as JSON: the layout of version 1, which ``run.schema.json`` beside this file states for machines.

All keys of a file are always there, ``format`` first. New keys may come at any time, and readers skip
unknown ones; where a key leaves or changes its meaning ``version`` grows.

- ``format``: ``"nkitools-run"``; ``version``: 1; ``made_by``: the version of nkitools
- ``kernel``, ``target``, ``chip``, ``precision``: as in the `Run`; ``settings``: the other settings of its launch
- ``peak_bytes``: the most that its arguments and tensors in HBM took of the host at one time
- ``call``: null, or the form of the call (`nkitools.launch.call_form`): the kernel's place, arguments without elements
- ``error``: null, or ``{"type", "text", "finding"}``: the exception that ended it, and the place of its finding in
  ``findings`` (else the finding itself, or null)
- ``outputs``: a value (see `nkitools.record.saved.encoding`): arrays are ``{"array": ...}``,
  containers ``{"tuple": [...]}``
- ``prints``, ``findings``: a list of objects with the fields of `Print` and `Finding`; arrays are ``{"array": ...}``
- ``allowed``: objects ``{"finding", "reason"}``; ``expected``: the places, among findings and then allowed ones, of
  those that a test asked for
- ``ranks``: whether each of ``records`` is that of a communicating rank; ``records``: the issued instructions, see
  `nkitools.record.saved.packing`. In each ``writes``, ``inputs`` and ``results`` are objects with the fields of
  `nkitools.record.watch.written.Written`, empty without a watch; their ``storage`` is a place in its ``storages``
- ``reference``: null, or ``{"values", "rtol", "atol", "equal_nan", "rules"}``: what the outputs should have been, a
  value like ``outputs``, and by what it was compared
- ``more``: what runs of its kind have beside, of custom operators for example ``cores``: an object of values
- ``sources``: the text of the author's files, as they were when the run was saved, by their paths

A file is ASCII and strict JSON: numbers that JSON does not have are written as texts.
"""

from __future__ import annotations

import dataclasses
import json
import os
from functools import cache
from importlib.metadata import version as version_of
from typing import Any, cast

from nkitools.record.run_contents import RunContents
from nkitools.record.saved.encoding import encoded_field, encoded_value
from nkitools.record.saved.packing import packed_record
from nkitools.record.whole_file import write_whole

FORMAT = "nkitools-run"
VERSION = 1


def run_as_json(run: RunContents, *, compress: bool = True) -> str:
    """Return the run as one line of JSON: `Run.to_json`."""
    return json.dumps(run_as_plain(run, compress=compress), allow_nan=False, separators=(",", ":"))


def run_as_plain(run: RunContents, *, compress: bool = True) -> dict[str, Any]:
    """Return the run as dictionaries, lists, texts and numbers, laid out as above."""
    judged = [*run.findings, *run.allowed]
    places = {id(finding): place for place, finding in enumerate(judged)}
    reasons = run.reasons
    plain = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": _own_version(),
        "kernel": run.kernel,
        "target": run.target,
        "chip": run.chip,
        "precision": run.precision,
        "settings": run.settings,
        "peak_bytes": run.peak_bytes,
        "call": run.call,
        "error": _error(run),
        "outputs": encoded_value(run.outputs, compress=compress),
        "prints": run.prints,
        "findings": run.findings,
        "allowed": [{"finding": one, "reason": reasons[one.rule]} for one in run.allowed],
        "expected": [places[id(one)] for one in run.expected if id(one) in places],
        "ranks": bool(run.records),
        "records": [packed_record(each, compress=compress) for each in run.all_records],
        "reference": _reference(run, compress),
        "more": {name: encoded_value(getattr(run, name), compress=compress) for name in _own_fields(run)},
        "sources": run.sources,
    }
    return cast("dict[str, Any]", encoded_field(plain, compress=compress))


def _error(run: RunContents) -> dict[str, Any] | None:
    if run.error is None:
        return None
    finding = getattr(run.error, "finding", None)
    place = next((at for at, each in enumerate(run.findings) if each is finding), finding)
    return {"type": type(run.error).__name__, "text": str(run.error), "finding": place}


def _reference(run: RunContents, compress: bool) -> dict[str, Any] | None:
    found = run.reference
    if found is None:
        return None
    stated = {"rtol": found.rtol, "atol": found.atol, "equal_nan": found.equal_nan}
    rules = [[each.rtol, each.atol] for each in found.rules]
    return {"values": encoded_value(found.values, compress=compress), **stated, "rules": rules}


def _own_fields(run: RunContents) -> list[str]:
    """Return the fields of a run of a kind of its own that other runs do not have."""
    common = {field.name for field in dataclasses.fields(RunContents)}
    return [field.name for field in dataclasses.fields(run) if field.name not in common]


@cache
def _own_version() -> str:
    return version_of("nkitools")


def save_run(run: RunContents, path: str | os.PathLike[str], *, compress: bool = True) -> None:
    """`Run.save`: the file is there whole or not at all."""
    write_whole(path, run_as_json(run, compress=compress) + "\n")
