"""Forked processes are as those that an interpreter starts, and every sweep's case has its turn."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import EARLY, TURNS, in_order, this_turn
from tests.processes import interpreter, python, run_python

TELL = """
import json, os, sys
print(json.dumps([sys.argv, os.getcwd(), os.environ.get("OWN"), __name__, sys.path[0]]))
print("an error", file=sys.stderr)
sys.exit(7)
"""


def test_a_forked_process_is_told_what_a_started_one_is(tmp_path):
    (tmp_path / "tell.py").write_text(TELL)
    environment = {**os.environ, "OWN": "its own"}
    for words in (["-c", TELL, "a", "b"], ["-m", "tell", "a"], [str(tmp_path / "tell.py"), "a"]):
        started = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        status, printed = run_python(*words, cwd=tmp_path, env=environment)
        assert (status, sorted(printed.splitlines())) == (7, sorted(started.stdout.splitlines()))


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 0),
        ("raise ValueError('of its own')", 1),
        ("raise SystemExit('a message')", 1),
        ("import os; os._exit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("raise KeyboardInterrupt", -signal.SIGINT),
    ],
)
def test_it_ends_as_a_started_one_does(code, status):
    started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    ended, printed = run_python("-c", code)
    assert ended == started.returncode == status
    assert printed.splitlines()[-1:] == started.stderr.splitlines()[-1:]


def test_no_two_draw_the_same_numbers():
    draw = "import random, numpy; from ray._raylet import ObjectID; "
    draw += "print(random.random(), numpy.random.rand(), ObjectID.from_random().hex())"
    one, other = (run_python("-c", draw)[1].split() for _ in range(2))
    assert len({*one, *other}) == 6


def test_it_gets_signals_and_is_waited_for():
    process = python("-c", "import time; print('here', flush=True); time.sleep(600)")
    assert process.stdout.readline() == "here\n"
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.01)
    process.terminate()
    assert process.communicate() == ("", None)
    assert process.returncode == -signal.SIGTERM


def test_what_stands_for_the_interpreter_forks_as_well_and_takes_its_process_with_it():
    reader, writer = os.pipe()
    code = f"import os, time; os.write({writer}, str(os.getpid()).encode()); time.sleep(600)"
    stand_in = subprocess.Popen([interpreter(), "-W", "ignore", "-c", code], pass_fds=[writer])
    os.close(writer)
    forked = int(os.read(reader, 20))
    assert forked != stand_in.pid
    stand_in.kill()
    stand_in.wait()
    assert os.read(reader, 1) == b"", "the process has ended, and closed its end"
    os.close(reader)


class Item(SimpleNamespace):
    """A test, as far as its order goes."""

    def get_closest_marker(self, name):
        return name in self.marks or None

    def __hash__(self):
        return id(self)


def items_of(file, count, *marks, fixtures=()):
    path = Path(file, "test_it.py")
    return [
        Item(path=path, originalname="test", number=n, marks=marks, fixturenames=fixtures)
        for n in range(count)
    ]


def test_in_as_many_commits_as_there_are_turns_every_case_is_tried():
    many, few = items_of("many", 3 * TURNS + 1, "sweep"), items_of("few", 2, "sweep")
    usual = items_of("usual", 3 * TURNS, "slow")
    tried = [this_turn([*many, *few, *usual], slice(turn, None, TURNS)) for turn in range(TURNS)]
    assert sum(part.count(case) for part in tried for case in many) == len(many)
    assert all(case in part for part in tried for case in (*few, *usual))
    assert this_turn(many, slice(None)) == many


def test_one_worker_begins_with_rays_tests_and_the_other_with_what_is_long():
    ray = items_of("ray", 5, fixtures=["local_ray"])
    long_ray = items_of("long ray", 5, "slow", fixtures=["local_ray"])
    long, early = items_of("long", 5, "slow"), [items_of(name, 3) for name in EARLY[:2]]
    quick = [items_of(f"quick {n}", 1) for n in range(81)]
    items = [item for file in (ray, *quick, long, long_ray, *early) for item in file]
    ordered = in_order(items, workers=2)
    assert sorted(map(id, ordered)) == sorted(map(id, items))
    first, second = ordered[: len(items) // 2], ordered[len(items) // 2 :]
    assert first[:13] == [*early[0], *long_ray, *ray]
    assert second[:8] == [*early[1], *long]
