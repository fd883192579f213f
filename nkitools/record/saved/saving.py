"""A run as a file: a zip that `numpy.load` opens, not compressed as a whole, with one JSON and the bytes of all arrays.

``run.json`` has all but these bytes: the keys below, ``format`` first, ASCII and strict JSON. New keys may come at any
time, and readers skip unknown ones; where a key leaves or changes its meaning ``version`` grows. ``arrays.npy`` is an
array of uint8: the bytes of arrays one after the other (see `nkitools.record.saved.encoding`). Version 1, of
`Run.to_json` and older files, is the JSON alone, with the bytes in it.

- ``format``: ``"nkitools-run"``; ``version``: 2 (1: JSON alone); ``made_by``: the version of nkitools
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
  value like ``outputs``, and the rules of the comparison
- ``more``: further fields of runs of its kind, for custom operators ``cores``, say: an object of values
- ``sources``: the text of the author's files, as they were when the run was saved, by their paths
"""

from __future__ import annotations

import dataclasses
import json
import os
from functools import cache
from importlib.metadata import version as version_of
from io import BytesIO
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np

from nkitools.record.run_contents import RunContents
from nkitools.record.saved.encoding import Writer
from nkitools.record.saved.packing import packed_record
from nkitools.record.whole_file import write_whole

FORMAT = "nkitools-run"
VERSION = 2
JSON, ARRAYS = "run.json", "arrays.npy"  # the members of a file


def run_as_json(run: RunContents, *, compress: bool = True) -> str:
    """Return the run as one line of JSON: `Run.to_json`."""
    return _text(run, Writer(compress=compress, inline=True), version=1)


def save_run(run: RunContents, path: str | os.PathLike[str], *, compress: bool = True) -> None:
    """`Run.save`: the file is there whole or not at all."""
    writer, content = Writer(compress=compress), BytesIO()
    text = _text(run, writer, VERSION)
    with ZipFile(content, "w") as file:
        file.writestr(ZipInfo(JSON), text)  # without a date, so that one run is one file
        with file.open(ZipInfo(ARRAYS), "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(
                member, {"descr": "|u1", "fortran_order": False, "shape": (len(writer.beside),)}
            )
            member.write(writer.beside)
    with content.getbuffer() as view:  # given back whatever happens, or the content could not be
        write_whole(path, view)


def _text(run: RunContents, writer: Writer, version: int) -> str:
    """Return the run laid out as above."""
    judged = [*run.findings, *run.allowed]
    places = {id(finding): place for place, finding in enumerate(judged)}
    reasons = run.reasons
    plain = {
        "format": FORMAT,
        "version": version,
        "made_by": _own_version(),
        "kernel": run.kernel,
        "target": run.target,
        "chip": run.chip,
        "precision": run.precision,
        "settings": run.settings,
        "peak_bytes": run.peak_bytes,
        "call": run.call,
        "error": _error(run),
        "outputs": writer.value(run.outputs),
        "prints": run.prints,
        "findings": run.findings,
        "allowed": [{"finding": one, "reason": reasons[one.rule]} for one in run.allowed],
        "expected": [places[id(one)] for one in run.expected if id(one) in places],
        "ranks": bool(run.records),
        "records": [packed_record(each, writer) for each in run.all_records],
        "reference": _reference(run, writer),
        "more": {name: writer.value(getattr(run, name)) for name in _own_fields(run)},
        "sources": run.sources,
    }
    return json.dumps(writer.field(plain), allow_nan=False, separators=(",", ":"))


def _error(run: RunContents) -> dict[str, Any] | None:
    if run.error is None:
        return None
    finding = getattr(run.error, "finding", None)
    place = next((at for at, each in enumerate(run.findings) if each is finding), finding)
    return {"type": type(run.error).__name__, "text": str(run.error), "finding": place}


def _reference(run: RunContents, writer: Writer) -> dict[str, Any] | None:
    found = run.reference
    if found is None:
        return None
    stated = {"rtol": found.rtol, "atol": found.atol, "equal_nan": found.equal_nan}
    rules = [[each.rtol, each.atol] for each in found.rules]
    return {"values": writer.value(found.values), **stated, "rules": rules}


def _own_fields(run: RunContents) -> list[str]:
    """Return the fields of a run of a kind of its own that other runs do not have."""
    common = {field.name for field in dataclasses.fields(RunContents)}
    return [field.name for field in dataclasses.fields(run) if field.name not in common]


@cache
def _own_version() -> str:
    return version_of("nkitools")
