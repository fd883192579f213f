"""Children keep their limits and end with their owner, whatever they do and however the owner ends."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from nkitools.processes import AnsweringChild, Child, End, Limits, Lost, Output, TimedOut, checked_seconds, output_of
from nkitools.processes.warm import Ended, WarmCalls
from tests.cases import each
from tests.children import has_ended, line_of, python, started

pytestmark = pytest.mark.process
LINUX = sys.platform == "linux"
MIB = 1 << 20
NO_LIMITS = Limits()

# What a child may leave behind: each writes the numbers of its processes into a file, and goes on for a minute.
SPINS = "import os, sys\nopen(sys.argv[1], 'a').write(f'{os.getpid()}\\n')\nwhile True: pass"
IN_GROUP = "import os, sys, time\nos.fork()\nopen(sys.argv[1], 'a').write(f'{os.getpid()}\\n')\ntime.sleep(60)"
IN_SESSION = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
open(sys.argv[1], 'a').write(f'{os.getpid()}\\n')
time.sleep(60)
"""


def numbers(file: Path, count: int = 1) -> list[int]:
    """Wait until so many processes have written their numbers; return these."""
    until = time.monotonic() + 60
    while not file.exists() or len(file.read_text().split()) < count:
        assert time.monotonic() < until, "the processes have not begun"
        time.sleep(0.01)
    return [int(number) for number in file.read_text().split()]


def ended(command: str, limits: Limits = NO_LIMITS) -> End:
    """Run a program of Python, and return how it ended."""
    found = Child([sys.executable, "-c", command], limits).wait(60)
    assert found is not None
    return found


def test_a_command_has_its_streams_files_and_status(tmp_path: Path) -> None:
    """Stdin, stdout, environment, folder, a descriptor; and stdout ends when the child closes it."""
    reads, writes = os.pipe()
    program = (
        "import os, sys\n"
        f"os.write({writes}, b'through')\n"
        "print(sys.stdin.readline().strip(), os.environ['WORD'], os.path.basename(os.getcwd()), flush=True)\n"
        "os.close(1)\n"
        "sys.stdin.readline()\n"
        "sys.exit(7)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": tmp_path}
    child = Child([sys.executable, "-c", program], **pipes, env={**os.environ, "WORD": "said"}, pass_fds=(writes,))
    os.close(writes)
    child.stdin.write("first\n")
    child.stdin.flush()
    assert child.stdout.read() == f"first said {tmp_path.name}\n"
    assert child.poll() is None
    child.stdin.close()
    assert child.wait(60) == End(7)
    assert os.read(reads, 100) == b"through"
    os.close(reads)
    child.stdout.close()


@each(
    "program, words",
    [
        ("import sys; sys.exit(3)", "its process ended with exit code 3"),
        ("import os; os.abort()", "its process was ended by SIGABRT"),
        ("import os; os._exit(0)", "its process ended with exit code 0"),
    ],
)
def test_an_end_in_words(program: str, words: str) -> None:
    """An exit status, or the name of a signal."""
    assert ended(program).words() == words


def test_a_program_that_is_not_there(capfd: pytest.CaptureFixture[str]) -> None:
    """Status 1, and a line on stderr that names it."""
    end = Child([str(Path("no") / "such")]).wait(60)
    assert (end, capfd.readouterr().err) == (End(1), "no/such: No such file or directory\n")


@each("source", [SPINS, IN_GROUP, IN_SESSION])
@each("way", ["close", "time"])
def test_nothing_that_a_child_has_started_lives_on(source: str, way: str, tmp_path: Path) -> None:
    """By `close`, and by its time limit: a loop, a child of it, and one in a session of its own."""
    if source == IN_SESSION and not LINUX:
        pytest.skip("only Linux says which processes another session has")
    file = Path(tempfile.mkdtemp(dir=tmp_path)) / "numbers"
    limits = Limits(seconds=2.0) if way == "time" else Limits()
    child = Child([sys.executable, "-c", source, str(file)], limits)
    found = numbers(file, 1 if source == SPINS else 2)
    if way == "close":
        child.close()
    else:
        end = child.wait(60)
        assert end is not None
        assert (end.why, end.words()) == ("time", "it did not end within 2 s")
    assert all(map(has_ended, found))


def test_what_a_child_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    """A child that ends well, and has a process in another session, is waited for no longer than itself."""
    if not LINUX:
        pytest.skip("only Linux says which processes another session has")
    file = Path(tempfile.mkdtemp(dir=tmp_path)) / "numbers"
    source = "import os, sys, time\n" + (
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.setsid()\n"
        "    open(sys.argv[1], 'w').write(f'{os.getpid()}')\n"
        "    time.sleep(60)\n"
        "while not os.path.exists(sys.argv[1]) or not open(sys.argv[1]).read(): time.sleep(0.01)\n"
    )
    child = Child([sys.executable, "-c", source, str(file)])
    assert child.wait(30) == End(0)
    assert all(map(has_ended, numbers(file)))


OWNER = """
import sys, time
from nkitools.processes import Child
child = Child([sys.executable, "-c", sys.argv[1], sys.argv[2]])
print("begun", flush=True)
time.sleep(60)
"""


@each("name", ["SIGKILL", "SIGTERM", "SIGINT"])
@each("source", [SPINS, IN_SESSION])
def test_a_child_dies_with_its_owner(name: str, source: str, tmp_path: Path) -> None:
    """However the owner ends, the child and what it has started end at once."""
    import signal

    if source == IN_SESSION and not LINUX:
        pytest.skip("only Linux says which processes another session has")
    file = Path(tempfile.mkdtemp(dir=tmp_path)) / "numbers"
    with started(python("-c", OWNER, source, str(file))) as owner:
        assert line_of(owner) == "begun\n"
        found = numbers(file, 1 if source == SPINS else 2)
        owner.send_signal(getattr(signal, name))
        assert all(map(has_ended, found))


@pytest.mark.skipif(not LINUX, reason="the death signal is Linux's")
def test_a_child_dies_with_its_guard(tmp_path: Path) -> None:
    """A guard that is killed takes its child along, and its owner hears of it."""
    file = Path(tempfile.mkdtemp(dir=tmp_path)) / "numbers"
    child = Child([sys.executable, "-c", SPINS, str(file)])
    (found,) = numbers(file)
    parent = int(Path(f"/proc/{found}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(parent, 9)
    end = child.wait(30)
    assert end is not None
    assert end.words() == "its process was lost"
    assert has_ended(found)


FUNCTIONS_OWNER = """
import os, sys, time
from nkitools.processes import FunctionChild

def spin(file):
    if os.fork() == 0:
        os.setsid()
    open(file, "a").write(f"{os.getpid()}\\n")
    while True: pass

if __name__ == "__main__":
    children = [FunctionChild(spin, each, has_threads=sys.argv[1] == "threads") for each in sys.argv[2:]]
    print("begun", flush=True)
    while sys.stdin.readline():
        children.pop(0).close()
        print("ended", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(not LINUX, reason="only Linux says which processes another session has")
@each("way", ["forks", "threads"])
def test_functions_end_with_their_owner_and_apart(way: str, tmp_path: Path) -> None:
    """One that is closed ends though a later fork has its socket too; a killed owner ends the others."""
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    (folder / "owner.py").write_text(FUNCTIONS_OWNER)
    files = [folder / name for name in "abc"]
    command = python(str(folder / "owner.py"), way, *map(str, files))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with started(command, stdin=subprocess.PIPE, env=environment) as owner:
        assert line_of(owner) == "begun\n"
        first, second, third = (numbers(file, 2) for file in files)
        assert owner.stdin is not None
        owner.stdin.write("\n")
        owner.stdin.flush()
        assert line_of(owner) == "ended\n"
        assert all(map(has_ended, first))
        assert not any(has_ended(each, 0.0) for each in [*second, *third])
        owner.kill()
        assert all(map(has_ended, [*second, *third]))


def test_limits_hold_without_the_guard(tmp_path: Path) -> None:
    """The child itself has a limit of processor time, of each file, and (Linux) of its address space."""
    program = (
        "import resource as r\n"
        "print([r.getrlimit(each)[0] for each in (r.RLIMIT_CPU, r.RLIMIT_FSIZE, r.RLIMIT_CORE)])\n"
        "print(r.getrlimit(r.RLIMIT_AS)[0])"
    )
    child = Child([sys.executable, "-c", program], Limits(3.0, 512 * MIB, 5 * MIB), stdout=subprocess.PIPE, text=True)
    first, second = child.stdout.read().splitlines()
    cores = len(os.sched_getaffinity(0)) if LINUX else os.cpu_count() or 1
    assert first == str([5 * cores, 5 * MIB, 0])
    if LINUX:
        assert 512 * MIB < int(second) < 1024 * MIB
    child.stdout.close()
    child.close()


def test_a_file_may_have_so_many_bytes(tmp_path: Path) -> None:
    """The write beyond the limit is an OSError of the child's; the file has as much as the limit says."""
    file = tmp_path / "file"
    program = (
        f"import os\nfile = open({str(file)!r}, 'wb', buffering=0)\n"
        f"try:\n    [file.write(bytes({MIB})) for _ in range(9)]\nexcept OSError: os._exit(4)"
    )
    assert ended(program, Limits(file_size=3 * MIB)) == End(4, "", Limits(file_size=3 * MIB))
    assert file.stat().st_size == 3 * MIB


@pytest.mark.skipif(not LINUX, reason="macOS limits no memory")
def test_all_processes_share_a_limit_of_memory() -> None:
    """Four processes of 100 MiB each, none of them beyond 256 MiB by itself."""
    program = f"import os, time\nfor _ in range(2): os.fork()\nkept = bytearray(100 * {MIB})\ntime.sleep(60)"
    end = ended(program, Limits(together=256 * MIB))
    assert (end.why, end.words()) == ("memory", "it needs more memory than it may have (0.25 GiB)")


@pytest.mark.skipif(not LINUX, reason="macOS lists no processes")
def test_a_child_that_forks_without_end() -> None:
    """It is ended with all its forks."""
    program = "import os, time\nfor _ in range(600):\n    if not os.fork(): break\ntime.sleep(60)"
    end = ended(program, Limits(processes=256))
    assert end.words() == "it started too many processes"


def test_a_child_shows_where_it_stands_and_hears_ctrl_c(tmp_path: Path) -> None:
    """The owner's wish reaches the child itself, through its guard."""
    program = (
        "import faulthandler, signal, sys, time\n"
        "faulthandler.register(signal.SIGUSR1)\n"
        "def where_it_stands():\n"
        "    print('begun', flush=True)\n"
        "    try:\n        time.sleep(60)\n"
        "    except KeyboardInterrupt: sys.exit(9)\n"
        "where_it_stands()"
    )
    with open(tmp_path / "log", "w+") as log:
        child = Child([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=log, text=True)
        assert child.stdout.readline() == "begun\n"
        child.ask_for_stacks()
        until = time.monotonic() + 30
        while "where_it_stands" not in Path(log.name).read_text():
            assert time.monotonic() < until
            time.sleep(0.02)
        child.interrupt()
        assert child.wait(30) == End(9)
        child.stdout.close()


def test_the_output_of_a_command() -> None:
    """Its end, its stdout and its stderr; `TimedOut` has what it wrote when it was asked where it stands."""
    program = "import sys; print('here'); print('said \\udc80', file=sys.stderr); sys.exit(2)"
    assert output_of([sys.executable, "-c", program], 60) == Output(End(2), "here", "said \\udc80")
    program = "import faulthandler, signal\nfaulthandler.register(signal.SIGUSR1)\nwhile True: pass"
    with pytest.raises(TimedOut, match=r"did not end within 1\.5 s") as late:
        output_of([sys.executable, "-c", program], 1.5)
    assert 'File "<string>", line 3' in late.value.stacks


ANSWERS = """
import os, sys, time
from nkitools.processes.requests import message_end
messages = message_end()
while True:
    message = messages.recv()
    if message == "leave": os._exit(5)
    if message == "sleep": time.sleep(60)
    if message == "fork" and os.fork(): os._exit(6)
    messages.send((os.getpid(), message))
"""


def test_messages_of_a_child() -> None:
    """An answer; none in time; none of a child that is gone, and its end."""
    child = AnsweringChild([sys.executable, "-c", ANSWERS])
    child.send({"a": [1, None]})
    assert child.receive(60) == (child.pid, {"a": [1, None]})
    child.send("sleep")
    with pytest.raises(TimedOut, match=r"did not end within 0\.2 s"):
        child.receive(0.2)
    child.close()
    for message, status in (("leave", 5), ("fork", 6)):
        child = AnsweringChild([sys.executable, "-c", ANSWERS])
        child.send(message)
        with pytest.raises(Lost):
            child.receive(60), child.receive(60)
        assert child.wait(60) == End(status)
        with pytest.raises(Lost):
            child.send(message)
        child.close()


@each("seconds", [float("nan"), float("inf"), 1e308, -1.0, 0.0, -float("inf")])
def test_a_limit_that_is_no_time(seconds: float) -> None:
    """Refused with its value."""
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text is below
        checked_seconds(seconds)
    assert str(error.value).startswith(f"seconds is {seconds:g}: it must be more than 0 and at most 86400")
    assert checked_seconds(0.5) == 0.5


FUNCTIONS = """
import ctypes, os, sys, time

def double(x): return 2 * x
def print_much(count):
    for _ in range(count): sys.stdout.write("x" * 1_000_000)
def raise_it(text): raise BaseException(text)
def leave(status): os._exit(status)
def exit(status): sys.exit(status)
def crash(_): ctypes.string_at(0)
def spin(_):
    while True: pass
def allocate(size): return len(bytearray(size))
def answer(size): return bytes(size)
def no_answer(_): return lambda: None
def write_everywhere(_):
    for file in range(64):
        try: os.write(file, b"junk" * 100)
        except OSError: pass
    return "right"
def kill_parents(_):
    os.kill(os.getppid(), 9)
    time.sleep(60)
def reads(_): return sys.stdin.read()
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A module of functions that misbehave, and a process that has it imported."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "functions_of_calls.py").write_text(FUNCTIONS)
    sys.path.insert(0, str(folder))
    import functions_of_calls

    calls = WarmCalls(["functions_of_calls"])
    yield functions_of_calls, calls
    calls.close()
    sys.path.remove(str(folder))


def test_a_call_returns_and_prints(functions: Any) -> None:
    """Its value and its text; many at a time, each its own."""
    module, calls = functions
    assert calls.call(module.double, "ab", Limits(60)).value == "abab"
    assert calls.call(module.print_much, 3, Limits(60)).printed == "x" * MIB
    assert calls.call(module.reads, None, Limits(60)).value == ""
    found: dict[int, int] = {}

    def call(number: int) -> None:
        found[number] = calls.call(module.double, number, Limits(60)).value

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: 2 * number for number in range(8)}


@each(
    "name, argument, limits, words",
    [
        ("leave", 3, Limits(60), "its process ended with exit code 3"),
        ("leave", 0, Limits(60), "its process ended with exit code 0"),
        ("exit", 4, Limits(60), "its process ended with exit code 4"),
        ("exit", "gone", Limits(60), "its process ended with exit code 1: gone"),
        ("raise_it", "mine \ud800", Limits(60), r"its process ended with exit code 1: BaseException: mine \ud800"),
        ("crash", None, Limits(60), "its process was ended by SIGSEGV"),
        ("spin", None, Limits(0.5), "it did not end within 0.5 s"),
        ("kill_parents", None, Limits(60), "its process was lost"),
        ("no_answer", None, Limits(60), "its process ended with exit code 1: "),
    ],
)
def test_a_call_without_a_result(functions: Any, name: str, argument: Any, limits: Limits, words: str) -> None:
    """The reason in words; the next call is answered."""
    module, calls = functions
    with pytest.raises(Ended) as error:
        calls.call(getattr(module, name), argument, limits)
    assert str(error.value).startswith(words)
    assert calls.call(module.double, 2, Limits(60)).value == 4


@pytest.mark.skipif(not LINUX, reason="macOS limits no memory")
def test_a_call_that_needs_too_much_memory(functions: Any) -> None:
    """It is refused at the allocation, not when the machine has no more."""
    module, calls = functions
    assert calls.call(module.allocate, 100 * MIB, Limits(60, 256 * MIB)).value == 100 * MIB
    with pytest.raises(Ended, match=r"it needs more memory than it may have \(0\.25 GiB\)"):
        calls.call(module.allocate, 300 * MIB, Limits(60, 256 * MIB))


def test_junk_in_all_open_files_is_no_answer(functions: Any) -> None:
    """The call's own result comes back, and its process answers on."""
    module, calls = functions
    assert calls.call(module.write_everywhere, None, Limits(60)).value == "right"
    assert calls.call(module.double, 1, Limits(60)).value == 2


def test_a_cancelled_call_ends(functions: Any) -> None:
    """At once, long before its time limit."""
    module, calls = functions
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Ended, match="it was cancelled"):
        calls.call(module.spin, None, Limits(60), stop)
    assert time.monotonic() - began < 30


def test_a_warm_process_that_is_gone_is_started_again(functions: Any) -> None:
    """The next call finds another one."""
    module, calls = functions
    assert calls.call(module.double, 1, Limits(60)).value == 2
    calls._process.kill()
    calls._process.wait()
    assert calls.call(module.double, 3, Limits(60)).value == 6


WARM_OWNER = textwrap.dedent(
    """
    import sys, threading, time
    sys.path.insert(0, sys.argv[1])
    import functions_of_calls
    from nkitools.processes import Limits
    from nkitools.processes.warm import WarmCalls
    calls = WarmCalls(["functions_of_calls"])
    print(calls.call(functions_of_calls.double, 1, Limits(60)).value, calls._process.pid, flush=True)
    calls.call(functions_of_calls.spin, None, Limits(60))
    """
)


def test_calls_die_with_their_owner(functions: Any) -> None:
    """The warm process and a call that hangs end when their owner is killed."""
    module, _ = functions
    with started(python("-c", WARM_OWNER, str(Path(module.__file__).parent))) as owner:
        warm = int(line_of(owner).split()[1])
        until = time.monotonic() + 30
        while len(below(warm)) < 2 and LINUX:  # the guard and the call
            assert time.monotonic() < until
            time.sleep(0.02)
        found = [warm, *below(warm)]
        owner.kill()
        assert all(map(has_ended, found))


def below(process: int) -> list[int]:
    """Return the processes below another one, where /proc lists them."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process:
            found += [int(place.parent.name), *below(int(place.parent.name))]
    return found
