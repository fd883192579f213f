"""Saved runs that are damaged or hostile: one sentence and exit code 2, never another exception."""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from click.testing import CliRunner, Result

import nkitools
from nkitools.cli import main
from tests.cases import cases
from tests.launch.kernels import doubled

X = np.arange(32, dtype=np.float32).reshape(8, 4)
HOSTILE = "\x1b[31m\u202ename\r\n::error file=giou.py::yes\n  ::warning::\n##[error]no\u2028"
COMMANDS = (["view", "-o", "page.html"], ["diff", "good.npz"], ["why", "--element", "0,0"])


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of the test's own, with a whole saved run in it."""
    monkeypatch.chdir(tmp_path)
    nkitools.simulate(doubled, X).save("good.npz")


def good() -> Any:
    """The run as JSON with the bytes of its arrays inside, which files have, too, beside those that lie outside."""
    return json.loads(nkitools.load_run("good.npz").to_json())


def write(name: str, content: bytes, *, as_zip: bool) -> None:
    """Write a run's JSON as a file, or as earlier versions did."""
    if not as_zip:
        Path(name).write_bytes(content)
        return
    with ZipFile(name, "w") as file:
        file.writestr("run.json", content)
        file.writestr("arrays.npy", b"")


def command(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def assert_clean(done: Result, what: object) -> None:
    """The command ended by itself, with at most one sentence."""
    assert done.exception is None or isinstance(done.exception, SystemExit), (what, done.exception)
    assert done.exit_code in (0, 1, 2), what
    if done.exit_code == 2:
        assert len(done.stderr.splitlines()) == 1, (what, done.stderr)


def array(data: bytes, dtype: str = "float32", shape: tuple[int, ...] = (1,), **more: Any) -> dict[str, Any]:
    return {"array": {"dtype": dtype, "shape": list(shape), "data": base64.b64encode(data).decode(), **more}}


def column(values: list[int]) -> dict[str, Any]:
    return array(np.array(values, np.int64).tobytes(), "int64", (len(values),))["array"]  # type: ignore[no-any-return]


def flipped(plain: Any) -> None:
    """One bit of a compressed array is another."""
    data = bytearray(zlib.compress(bytes(4096)))
    data[len(data) // 2] ^= 16
    plain["outputs"] = array(bytes(data), "uint8", (4096,), packing="zlib")


DAMAGE: dict[str, Callable[[Any], object]] = {
    "a flipped bit in a compressed array": flipped,
    "no compressed bytes": lambda plain: plain.update(outputs=array(b"notzlib", packing="zlib")),
    "an unknown chip": lambda plain: plain.update(chip="trn99"),
    "cycles that are a text": lambda plain: [each.update(cycles="x") for each in plain["records"][0]["plans"]],
    "a name that is a number": lambda plain: [each.update(name=5) for each in plain["records"][0]["plans"]],
    "written that is a number": lambda plain: [each.update(written=7) for each in plain["records"][0]["plans"]],
    "a storage's shape that is a text": lambda plain: [
        each.update(shape="x") for each in plain["records"][0]["storages"]
    ],
    "an unknown dtype": lambda plain: [each.update(dtype="moon") for each in plain["records"][0]["storages"]],
    "a file that is a number": lambda plain: [each.update(file=5) for each in plain["records"][0]["sites"]],
    "a mask of another size": lambda plain: plain.update(
        outputs=array(b"1234", mask=array(b"1234567", "bool", (7,))["array"])
    ),
    "a severity that there is not": lambda plain: plain["findings"].append(
        dict.fromkeys(("rule", "slug", "severity", "message", "file", "remedy"), "moon") | {"line": -5}
    ),
    "a line beyond every file": lambda plain: plain["findings"].append(
        dict.fromkeys(("slug", "message", "remedy"), "moon")
        | {"rule": "NK101", "severity": "error", "file": "/etc/passwd", "line": 10**30, "column": 10**30}
    ),
    "byte offsets beyond every memory": lambda plain: plain["records"][0]["columns"].update(
        byte_offset=column([1 << 60] * plain["records"][0]["columns"]["byte_offset"]["shape"][0])
    ),
    "sizes beyond every memory": lambda plain: [
        each.update(shape=[10**12] * len(each["shape"])) for each in plain["records"][0]["layouts"]
    ],
    "keys that are methods": lambda plain: plain.update(more={"__class__": 1, "save": 3, "x y": 4}),
    "settings that are a list": lambda plain: plain.update(settings=[1, 2]),
    "a program that is a text": lambda plain: plain["records"][0].update(programs=[[10**9, [10**9, "x"]]]),
}


@pytest.mark.parametrize("as_zip", [False, True])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_run_is_one_sentence(damage: str, as_zip: bool) -> None:
    """Whatever the command, and however late the damage shows."""
    plain = good()
    DAMAGE[damage](plain)
    write("bad.json", json.dumps(plain).encode(), as_zip=as_zip)
    for each in COMMANDS:
        assert_clean(command(*each, "bad.json"), each)


def test_the_sentence_names_the_file() -> None:
    """A bit that is another is no difference, exit code 1, but a damaged file, exit code 2."""
    plain = good()
    flipped(plain)
    Path("bad.json").write_text(json.dumps(plain))
    done = command("diff", "good.npz", "bad.json")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: bad.json: a saved run that is damaged: an array of 4096 bytes cannot be ")


def test_a_small_file_cannot_fill_the_memory() -> None:
    """The arrays of a run may take 4 GiB, whatever the file says; a caller may say another number."""
    plain = good()
    small = zlib.compress(bytes(1 << 20))
    plain["outputs"] = array(small, "uint8", (5 << 30,), packing="zlib")
    Path("bomb.json").write_text(json.dumps(plain))
    with pytest.raises(nkitools.SavedRunError, match="its arrays take more than 4 GiB; nkitools"):
        nkitools.load_run("bomb.json")
    plain["outputs"] = {"list": [array(small, "uint8", (1 << 20,), packing="zlib")] * 8}
    Path("many.json").write_text(json.dumps(plain))
    with pytest.raises(nkitools.SavedRunError, match=r"take more than 0\.00781 GiB"):
        nkitools.load_run("many.json", most_bytes=8 << 20)
    assert sum(each.nbytes for each in nkitools.load_run("many.json", most_bytes=9 << 20).outputs) == 8 << 20


def hostile_run() -> Any:
    plain = good()
    finding = dict.fromkeys(("slug", "message", "file", "remedy", "function"), HOSTILE)
    plain["findings"].append(finding | {"rule": "NK101", "severity": "error", "line": 3, "program": []})
    plain["prints"].append({"prefix": HOSTILE, **array(b"1234"), "value": array(b"1234"), "file": HOSTILE, "line": 3})
    for each in plain["records"][0]["storages"]:
        each["name"] = HOSTILE
    return plain | {"kernel": HOSTILE, "target": HOSTILE, "made_by": HOSTILE}


def assert_harmless(text: str) -> None:
    """Nothing commands a terminal or a log."""
    assert [sign for sign in text if sign in "\x1b\u202e\u2028\r"] == []
    assert [line for line in text.split("\n") if line.lstrip().startswith("::") or "##[" in line] == []
    assert "name" in text


def test_names_out_of_a_file_command_nothing() -> None:
    """Escapes of a terminal and commands of GitHub's logs are shown as text."""
    Path("bad.json").write_text(json.dumps(hostile_run()))
    for each in COMMANDS:
        done = command(*each, "bad.json")
        assert_clean(done, each)
        if each[0] == "diff":
            assert_harmless(done.output)
            assert "\\x1b[31m\\u202ename" in done.output
            assert "\\x3a:error file=giou.py" in done.output
    Path("bad.json").write_text(json.dumps(hostile_run() | {"version": 99}))
    done = command("view", "bad.json")
    assert done.exit_code == 2
    assert_harmless(done.stderr)


def leaves_of(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value in JSON."""
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, each in inner:
        yield from leaves_of(each, (*path, key))
    if not isinstance(node, (dict, list)):
        yield path


SIGNS = ['"', "0", "9", "-", "[", "]", "{", "null", "1e99", "x", ",", ""]
VALUES: tuple[Any, ...] = (None, -1, 10**18, "x", [], {}, True, 1.5, "", [[]], {"array": 1}, HOSTILE)


def with_other_value(plain: Any, draw: random.Random) -> bytes:
    """One value is another."""
    *outer, last = draw.choice(list(leaves_of(plain)))
    here = plain
    for key in outer:
        here = here[key]
    here[last] = draw.choice(VALUES)
    return json.dumps(plain).encode()


def with_other_signs(plain: Any, draw: random.Random) -> bytes:
    """Some signs of the text are others."""
    signs = list(json.dumps(plain))
    for _ in range(draw.choice([1, 1, 2, 5])):
        signs[draw.randrange(len(signs))] = draw.choice(SIGNS)
    return "".join(signs).encode()


def cut_off(plain: Any, draw: random.Random) -> bytes:
    """The file ends early, as on a full disk, with zeros in place of the rest or without."""
    return cut(json.dumps(plain).encode(), draw)


def cut(whole: bytes, draw: random.Random) -> bytes:
    length = draw.randrange(len(whole))
    return whole[:length] + bytes(draw.choice([0, 0, len(whole) - length]))


def with_other_bits(plain: Any, draw: random.Random) -> bytes:
    """Some bits of the bytes are others, which need be no UTF-8 any more."""
    return flip(json.dumps(plain).encode(), draw)


def flip(whole: bytes, draw: random.Random) -> bytes:
    data = bytearray(whole)
    for _ in range(draw.choice([1, 8, 64])):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(data)


def newer(plain: Any, draw: random.Random) -> bytes:
    """A later version wrote it: keys that are not known yet at any depth, and sometimes a higher version."""
    places = [path[:-1] for path in leaves_of(plain)]
    for path in draw.sample(places, min(3, len(places))):
        here = plain
        for key in path:
            here = here[key]
        if isinstance(here, dict):
            here[draw.choice(["added", "units", HOSTILE])] = draw.choice(VALUES)
    if draw.random() < 0.5:
        plain["version"] = draw.choice([plain["version"] + 1, 99, 10**30, "2.0"])
    return json.dumps(plain).encode()


def hostile(plain: Any, draw: random.Random) -> bytes:
    """Two of the damages above at once."""
    for damage in draw.sample(list(DAMAGE.values()), 2):
        with contextlib.suppress(LookupError, TypeError, AttributeError):  # the second finds no place any more
            damage(plain)
    return json.dumps(plain).encode()


KINDS = [*[with_other_value] * 3, *[with_other_signs] * 3, cut_off, with_other_bits, newer, hostile]


def file_cut_off(_: Any, draw: random.Random) -> bytes:
    """A file that ends early."""
    return cut(Path("good.npz").read_bytes(), draw)


def file_with_other_bits(_: Any, draw: random.Random) -> bytes:
    """Some bits of a file are others: of its table, of the JSON, of an array."""
    return flip(Path("good.npz").read_bytes(), draw)


FILES = [file_cut_off, file_with_other_bits]


@pytest.mark.soak
def test_no_file_leads_to_a_traceback() -> None:
    """20,000 changed files, each by one command: the command ends with 0, 1 or 2, and nothing else."""
    plain, draw = good(), random.Random(4711)
    for number in range(cases(20_000)):
        changed = draw.choice([*KINDS, *FILES])(copy.deepcopy(plain), draw)
        write("bad.json", changed, as_zip=not changed.startswith(b"PK") and draw.random() < 0.5)
        each = COMMANDS[number % 3]
        done = command(*each, "bad.json")
        assert_clean(done, (number, each))
        assert not set(done.output) & set("\x1b\u202e\u2028"), number
