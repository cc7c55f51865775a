"""Environments die, hang, raise and never start; nothing is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from rllib_minestudio.algorithms.env_pool import EnvPoolOptions, ProcessEnvs, process_envs
from rllib_minestudio.errors import EnvPoolError
from tests.algorithms import leaks
from tests.algorithms.env_pool.faulty_envs import (
    AnnouncedEnv,
    CountingEnv,
    EnvWithGame,
    FaultyEnv,
    ForkingEnv,
    SlowToClose,
)
from tests.algorithms.env_pool.playing import play

SHORT = EnvPoolOptions(reset_timeout_s=2.0, step_timeout_s=2.0)


@pytest.fixture
def make_pool():
    pools = []

    def make(makers, options=SHORT):
        pools.append(ProcessEnvs(makers, gamma=0.9, options=options))
        pools[-1].reset()
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def exists(pid):
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("fault", "moment", "cause"),
    [
        ("exit", "start", "died"),
        ("kill", "reset", "died"),
        ("kill", "step", "died"),
        pytest.param("hang", "start", "hung_start", marks=pytest.mark.slow),
        ("hang", "reset", "hung_reset"),
        ("hang", "step", "hung_step"),
        ("stop", "step", "hung_step"),
        ("raise", "start", "error"),
        ("raise", "reset", "error"),
    ],
)
def test_one_fails_and_the_others_go_on(make_pool, tmp_path, caplog, fault, moment, cause):
    options = EnvPoolOptions(start_timeout_s=8.0) if cause == "hung_start" else SHORT
    started = tmp_path / "started"
    faulty = partial(FaultyEnv, fault, moment, tmp_path / "x", after=started)
    pool = make_pool([faulty, partial(AnnouncedEnv, started)], options)
    answers, episodes = [0, 0], [[], []]
    for step in play(pool, 10**9):
        for row in step.rows.tolist():
            answers[row] += 1
        for episode in step.episodes:
            episodes[episode.env_index].append(episode)
        if len(episodes[0]) >= 3:
            break
    assert pool.restarts == {cause: 1}
    assert answers[1] > answers[0]  # it was never waited for
    assert all(episode.env_error is None for episode in episodes[1])
    failed = [episode.env_error for episode in episodes[0] if episode.env_error is not None]
    assert len(failed) == (moment == "step")
    assert all(cause in error for error in failed)
    assert f"Environment 0 failed ({cause})" in caplog.text


def test_one_that_fails_again_and_again_stops_everything(make_pool):
    options = EnvPoolOptions(max_restarts_per_hour=1)
    pool = make_pool([CountingEnv, partial(FaultyEnv, "exit", "step")], options)
    pids = pool.pids
    with pytest.raises(EnvPoolError, match=r"env_pool\.max_restarts_per_hour=1") as caught:
        list(play(pool, 10**9))
    assert "ended with exit code 3" in str(caught.value)
    assert not any(map(exists, pids))
    with pytest.raises(EnvPoolError, match="closed"):
        pool.recv()


def test_one_that_never_starts_is_given_up(monkeypatch):
    monkeypatch.setattr(process_envs, "FIRST_DELAY_S", 0.01)
    with pytest.raises(EnvPoolError, match="6 times in a row") as caught:
        ProcessEnvs([partial(FaultyEnv, "raise", "start")], gamma=1.0)
    assert "the game makes no sense" in str(caught.value)


def test_processes_are_replaced_periodically_at_the_end_of_episodes(make_pool, tmp_path):
    closed = tmp_path / "closed"
    options = EnvPoolOptions(restart_interval=0.2)
    pool = make_pool([partial(SlowToClose, closed), CountingEnv], options)
    pids, errors = pool.pids, []
    for step in play(pool, 10**9):
        errors += [episode.env_error for episode in step.episodes]
        # The slow one keeps its process while it closes, however often the other is replaced.
        if pool.restarts["periodic"] >= 3 and not set(pids) & set(pool.pids):
            break
    assert set(pool.restarts) == {"periodic"}
    assert errors and set(errors) == {None}
    assert closed.exists()  # it was asked to close, not killed


@pytest.mark.parametrize("waits", [True, False], ids=["while it waits for an action", "in a step"])
def test_one_that_is_killed_from_outside_is_replaced(make_pool, waits):
    pool = make_pool([CountingEnv])
    steps = play(pool, 40)
    step = next(steps)
    if waits:
        os.kill(pool.pids[0], signal.SIGKILL)
        wait_until(lambda: not exists(pool.pids[0]))
    step = next(steps)
    if not waits:
        os.kill(pool.pids[0], signal.SIGKILL)
        step = next(steps)
        while not step.truncated[0]:  # it may have answered before it died
            step = next(steps)
    assert (step.truncated[0], step.reward[0]) == (True, 0.0)
    assert 0 in step.final_obs
    assert pool.restarts == {"died": 1}
    assert next(steps).obs["image"][0, 0, 0, 0] == 1


def test_a_death_is_noticed_though_a_forked_process_keeps_the_connection_open(make_pool):
    pool = make_pool([ForkingEnv], EnvPoolOptions())  # long before the deadline of a minute
    episodes = []
    for step in play(pool, 10**9):
        episodes += step.episodes
        if pool.restarts:
            break
    assert pool.restarts == {"died": 1}
    assert "ended with exit code 1" in episodes[-1].env_error


def test_closing_leaves_nothing_behind(tmp_path):
    before, shared = len(os.listdir("/proc/self/fd")), leaks.named_memory()
    for attempt in range(3):
        game = tmp_path / f"{attempt}"
        pool = ProcessEnvs([partial(EnvWithGame, game), CountingEnv], gamma=1.0, options=SHORT)
        pool.reset()
        list(play(pool, 20))
        os.kill(pool.pids[1], signal.SIGKILL)
        list(play(pool, 20))
        wait_until(lambda game=game: game.exists() and len(game.read_text().split()) == 2)
        pids = [*pool.pids, *map(int, game.read_text().split())]
        pool.close()
        wait_until(lambda pids=pids: not any(map(exists, pids)))
    assert len(os.listdir("/proc/self/fd")) == before
    wait_until(lambda: not leaks.forgotten_memory(shared))  # other workers make and remove some


OWNER = """
import sys, time
from functools import partial
from pathlib import Path
from rllib_minestudio.algorithms.env_pool import ProcessEnvs
from tests.algorithms.env_pool.faulty_envs import EnvWithGame
from tests.algorithms.env_pool.playing import play
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    pool = ProcessEnvs([partial(EnvWithGame, folder / str(i)) for i in range(2)], gamma=1.0)
    pool.reset()
    list(play(pool, 10, min_ready=2))
    (folder / "reaper").write_text(str(pool._reaper.pid))
    (folder / "playing").touch()
    list(play(pool, 10**9))
"""


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_nothing_outlives_the_process_that_owns_the_pool(tmp_path, stopped):
    owner = subprocess.Popen([sys.executable, "-c", OWNER, tmp_path], cwd=Path(__file__).parents[3])
    files = [tmp_path / name for name in ("playing", "0", "1")]
    wait_until(lambda: all(file.exists() for file in files), seconds=300)
    pids = [int(pid) for i in range(2) for pid in (tmp_path / f"{i}").read_text().split()]
    assert all(map(exists, pids))
    if stopped:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    owner.kill()
    owner.wait()
    reaper = int((tmp_path / "reaper").read_text())
    wait_until(lambda: not any(map(exists, [*pids, reaper])))
