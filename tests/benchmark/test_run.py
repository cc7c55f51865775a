"""Runs of a benchmark: what they write, what they repeat, and what does not stop them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
import yaml

from rllib_minestudio.benchmark.players import AgentPlayer
from rllib_minestudio.benchmark.results import FAILED, MARKED, PLAYED, BenchmarkResults
from rllib_minestudio.benchmark.run import run_benchmark
from rllib_minestudio.cli.main import main
from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.request import world_seed
from rllib_minestudio.evaluation.summary import Summary
from tests.benchmark.conftest import TASKS, FailsInStep, write_suite
from tests.processes import ROOT, Process, python

NANO = "package:hunter_nano"


def table(results):
    """What a benchmark came to, without how long it took."""
    return [replace(task, seconds=0.0, videos={}) for task in results.tasks]


def test_a_run_writes_results_and_the_same_command_gives_the_same(request_of, tmp_path, capsys):
    results = run_benchmark(request_of(no_videos=False))
    assert [task.status for task in results.tasks] == [PLAYED, PLAYED, MARKED]
    stay, walk, dance = results.tasks
    assert (stay.rate.yes_rate, stay.progress) == (1.0, 1.0)
    assert 0 <= walk.progress < 1 and all(e.length <= 6 for e in walk.episodes)
    assert [episode.seed for episode in walk.episodes] == [world_seed(0, 0), world_seed(0, 1)]
    assert dance.reason == "Taste is no condition."
    assert results.total.tasks == 2 and list(results.categories) == ["move"]
    out = tmp_path / "out"
    assert BenchmarkResults.load(out).tasks == results.tasks
    assert Summary.load(out / "tasks" / "move" / "stay").rate.yes_rate == 1.0
    assert stay.videos == {"success": "tasks/move/stay/success.mp4"}
    assert (out / stay.videos["success"]).stat().st_size > 0
    assert not list(out.rglob("recordings"))
    assert (out / "benchmark.html").is_file()
    assert "move/stay: 2 of 2 episodes, progress 1.00" in capsys.readouterr().out
    again = run_benchmark(request_of(out="again"))
    assert table(again) == table(results)
    other = run_benchmark(request_of(out="other", seed=1, tasks="walk"))
    assert other.tasks[0].episodes != walk.episodes


def test_an_interrupted_run_goes_on(request_of, monkeypatch, capsys):
    played = []
    original = AgentPlayer.play

    def interrupted(self, task, episodes, settings):
        played.append(task.name)
        if len(played) == 2:
            raise KeyboardInterrupt
        return original(self, task, episodes, settings)

    monkeypatch.setattr(AgentPlayer, "play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(request_of())
    assert "1 of 2 tasks are done" in capsys.readouterr().err
    resumed = run_benchmark(request_of())
    assert played == ["move/stay", "move/walk", "move/walk"]
    assert "1 of 2 tasks are done" in capsys.readouterr().out
    run_benchmark(request_of())
    assert len(played) == 3, "nothing is played again"
    assert table(resumed) == table(run_benchmark(request_of(out="whole")))
    with pytest.raises(MineStudioError, match="holds results that differ in seed: choose another"):
        run_benchmark(request_of(seed=7))


def test_a_task_that_cannot_be_played_does_not_stop_the_others(request_of, tmp_path, capsys):
    broken = {**TASKS["move/walk"], "rewards": {f"{FailsInStep.__module__}.FailsInStep": {}}}
    tasks = {"a/broken": broken, "b/stay": TASKS["move/stay"]}
    folder = write_suite(tmp_path / "suite", tasks)
    words = ["benchmark", "run", "random", "--suite", folder, "--episodes", "1", "--no-videos"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert "FailsInStep' (a class to import and run)" in capsys.readouterr().err
    assert main([*words, "--trust", "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr()
    assert "the string broke" in told.err and "1 task failed, not counted" in told.out
    results = BenchmarkResults.load(tmp_path / "out")
    assert [task.status for task in results.tasks] == [FAILED, PLAYED]
    assert results.total.yes_rate == 1.0
    assert "Episode 0 could not be played" in results.tasks[0].reason
    assert "Traceback" in (tmp_path / "out" / "tasks" / "a" / "broken" / "error.txt").read_text()


def test_a_smoke_run_is_one_short_episode_per_task(request_of):
    results = run_benchmark(request_of(smoke=True, steps=3, tasks="walk"))
    (walk,) = results.tasks
    assert [episode.length for episode in walk.episodes] == [3]
    assert walk.time_limit == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["random", "--suite", "minestudo"], "unknown suite 'minestudo'"),
        (["randm", "--suite", "SUITE"], "Did you mean 'random'?"),
        (["random", "--suite", "SUITE", "--tasks", "fly*"], "no task that fits 'fly*'"),
        (["random", "--suite", "SUITE", "--deterministic"], "--deterministic is for policies"),
        (
            ["random", "--suite", "SUITE", "--set", "obs_size=3"],
            "only options of the environment",
        ),
        (
            ["random", "--suite", "SUITE", "--set", "env_config.callbacks=[]"],
            "a task brings its own callbacks",
        ),
        (["random", "--suite", "SUITE", "--set", "env_config.gama=1"], "gama"),
        (
            ["hunter", "--suite", "SUITE", "--set", "env_config.engine=minecraft"],
            "reads the embedded engine's",
        ),
        (
            [NANO, "--suite", "SUITE", "--set", "env_config.obs_size=[32, 32]"],
            "does not fit the observation of the tasks: image is",
        ),
        (["random", "--suite", "SUITE", "--out", "/dev/null/x"], "cannot be written to"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_are_found_before_anything_is_played(words, message, suite, tmp_path, capsys):
    words = [suite if word == "SUITE" else word for word in words]
    out = [] if "--out" in words else ["--out", str(tmp_path / "out")]
    assert main(["benchmark", "run", *words, *out]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_policy_meets_the_worlds_that_agents_meet(request_of):
    policy = run_benchmark(request_of(player=NANO, envs=2))
    again = run_benchmark(request_of(player=NANO, envs=2, out="again", tasks="walk"))
    agent = run_benchmark(request_of(out="agent", tasks="walk"))
    (walk,) = (task for task in policy.tasks if task.name == "move/walk")
    assert table(again) == [replace(walk, seconds=0.0, videos={})]
    assert [e.seed for e in walk.episodes] == [e.seed for e in agent.tasks[0].episodes]
    assert walk.digest == agent.tasks[0].digest
    assert policy.player["weights"]


def test_a_policy_in_bfloat16_plays_alike_and_is_not_mixed_with_others(request_of, tmp_path):
    file = tmp_path / "policy.yaml"

    def write(precision):
        config = {
            "env_config": {"obs_size": [64, 64]},
            "model": {"weights": NANO, "precision": precision},
        }
        described = {"run": "MineStudioPPO", "env": "MineStudioEnv", "config": config}
        file.write_text(yaml.safe_dump({"policy": described}))

    write("bfloat16")
    results = run_benchmark(request_of(player=str(file), envs=2))
    assert results.player["model"]["precision"] == "bfloat16"
    assert table(run_benchmark(request_of(player=str(file), envs=2, out="again"))) == table(results)
    write("float32")
    with pytest.raises(MineStudioError, match="holds results that differ in player"):
        run_benchmark(request_of(player=str(file), envs=2))


def start(*runs: Sequence[str]) -> Process:
    """`rllib` with these words, in turn, in a process of its own: Ray starts there, too."""
    program = "from rllib_minestudio.cli.main import main; "
    program += f"raise SystemExit(max(main(words) for words in {runs!r}))"
    return python("-c", program, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.slow  # two runs with Ray, in a process of their own
def test_the_number_of_workers_changes_nothing(suite, request_of, tmp_path):
    players = {"policy": NANO, "agent": "hunter"}
    words = ["benchmark", "run", "--suite", suite, "--envs", "2", "--episodes", "4", "--no-videos"]
    options = [*words, "--workers", "2"]
    runs = [[*options, player, "--out", str(tmp_path / out)] for out, player in players.items()]
    assert start(*runs).wait() == 0
    for out, player in players.items():
        alone = run_benchmark(request_of(player=player, envs=2, episodes=4, out=f"{out}_alone"))
        assert table(BenchmarkResults.load(tmp_path / out)) == table(alone)


@pytest.mark.slow  # a process that is killed, and another that goes on
def test_a_killed_run_goes_on(suite, request_of, tmp_path):
    words = ["benchmark", "run", "random", "--suite", suite, "--episodes", "3", "--no-videos"]
    out = tmp_path / "killed"
    first = out / "tasks" / "move" / "stay" / "result.json"
    process = start([*words, "--out", str(out)])
    while not first.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    written = first.stat().st_mtime_ns
    assert start([*words, "--out", str(out)]).wait() == 0
    assert first.stat().st_mtime_ns == written, "it is not played again"
    whole = run_benchmark(request_of(episodes=3, out="whole"))
    assert table(BenchmarkResults.load(out)) == table(whole)
    assert json.loads((out / "request.json").read_text())["seed"] == 0
