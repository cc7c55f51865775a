"""`rllib train file`, as a person runs it: real processes, real Ray, a tiny agent."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import av
import pytest
import yaml

from rllib_minestudio.checkpoints.record import read_record
from rllib_minestudio.cli.main import BAD_INPUT, main
from rllib_minestudio.evaluation.during_training import FOLDER
from rllib_minestudio.evaluation.summary import Summary
from rllib_minestudio.recordings.layout import BESIDE_FILE, VIDEO_FILE
from tests.cli.tiny import TINY
from tests.experiments.outputs.event_files import read_events
from tests.processes import run_rllib


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    return tmp_path


def train(folder, *arguments):
    """Run `rllib train file` in `folder`; returns the exit status and what was printed."""
    return run_rllib(folder, "train", "file", "tiny.yaml", *arguments)


def test_a_run_leaves_a_summary_a_curve_videos_and_what_trackers_want(folder):
    options = ["--set", "record_video_interval=4", "--set"]
    options += ["trackers.wandb={project: cows, group: some, name: first, mode: offline}"]
    status, output = train(folder, *options)
    assert status == 0, output
    assert "Traceback" not in output
    measured = "measuring the random policy (2 episodes of at most 12,000 steps): done"
    for part in (measured, "\n    4 ", "random policy", "video"):
        assert part in output
    (run,) = (folder / "results" / "tiny").iterdir()
    summary = json.loads((run / "summary.json").read_text())
    assert summary["best"]["iterations"] == 4
    assert len(summary["random_policy"]["returns"]) == 2
    assert os.path.isdir(summary["best"]["checkpoint"])
    assert (run / "learning_curve.png").stat().st_size > 0
    (trial,) = run.glob("MineStudioPPO_?????_00000_2*")
    assert (trial / "kept" / "iteration_000003" / "record.yaml").is_file()
    assert (trial / "best" / "record.yaml").is_file()
    for video in (run / "agent.mp4", trial / "videos" / "iteration_000004.mp4"):
        with av.open(str(video)) as container:
            assert sum(1 for _ in container.decode(video=0)) == 20

    values = [(event.step, value) for event in read_events(trial) for value in event.summary.value]
    steps = [step for step, v in values if v.tag == "ray/tune/learners/default_policy/value_loss"]
    assert len(steps) == 4
    assert [step for step, value in values if value.tag == "videos/agent"] == [4]

    (tracked,) = trial.glob("wandb/offline-run-*")
    (record,) = tracked.glob("run-*.wandb")
    written = record.read_bytes()
    for word in ("cows", "some", "first", "rllib-minestudio", "JudgeReset", "value_loss"):
        assert word.encode() in written, word
    assert len(list(tracked.glob("files/media/videos/videos/agent_4_*.mp4"))) == 1


@pytest.mark.slow
def test_a_grid_of_two_learning_rates_ends_in_a_table_and_goes_on(folder):
    options = ["--set", "lr={grid_search: [1e-4, 1e-3]}", "--set", "summary.video_episodes=0"]
    options += ["--set", "evaluation={interval: 1, episodes: 1, record: true}"]
    for iterations, how in ((2, options), (3, ["--resume", "--set", "gamma=0.9"])):
        status, output = train(folder, *how, "--stop", f"training_iteration={iterations}")
        assert status == 0, output
        assert "tiny: 2 trials" in output
        (run,) = (folder / "results" / "tiny").iterdir()
        trials = json.loads((run / "summary.json").read_text())["trials"]
        assert sorted(trial["settings"]["lr"] for trial in trials) == [1e-4, 1e-3]
        assert [trial["iterations"] for trial in trials] == [iterations, iterations]
    for trial in trials:
        config = read_record(trial["checkpoint"]).config
        assert config["lr"] == trial["settings"]["lr"] and config["gamma"] == 0.9
        evaluations = Path(trial["folder"]) / FOLDER
        for iteration in (1, 2, 3):  # also those before the run was resumed
            one = evaluations / f"iteration_{iteration:06}"
            assert len(Summary.load(one).episodes) == 1
            assert sorted(file.name for file in one.rglob("*.mp4")) == [BESIDE_FILE, VIDEO_FILE]


@pytest.mark.slow
def test_seeds_are_trials_and_one_curve_and_their_search_is_quiet(folder):
    options = ["--seeds", "2", "--set", "summary.video_episodes=0"]
    status, output = train(folder, *options, "--stop", "training_iteration=2")
    assert status == 0, output
    lines = [line for line in output.splitlines() if re.match(r" +\d+ ", line)]
    assert {line.split()[-1] for line in lines} == {"[seed=1]", "[seed=2]"}
    assert "tiny: mean return over 2 seeds: " in output
    (run,) = (folder / "results" / "tiny").iterdir()
    assert len(list(run.glob("MineStudioPPO_*_seed=[12]_2*"))) == 2
    summary = json.loads((run / "summary.json").read_text())
    assert sorted(trial["settings"]["seed"] for trial in summary["trials"]) == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "lrr=1"], "tiny.config: unknown key 'lrr'. Did you mean 'lr'?"),
        (["--resume"], "there is no run to resume"),
        (["--seeds", "2", "--set", "seed={grid_search: [1, 2]}"], "--seeds 2 counts from it"),
    ],
)
def test_bad_input_is_one_message_and_status_2(folder, monkeypatch, capfd, arguments, message):
    monkeypatch.chdir(folder)
    assert main(["train", "file", "tiny.yaml", *arguments]) == BAD_INPUT == 2
    captured = capfd.readouterr()
    output = captured.out + captured.err
    assert message in output.replace("\n", " ")
    assert "Traceback" not in output
    assert not (folder / "results").exists()


@pytest.mark.slow
def test_more_than_the_machine_has_is_one_message_and_status_2(folder):
    """In a process of its own: it starts a Ray of its own to see."""
    asked = ("num_learners=1", "num_gpus_per_learner=99")
    status, output = train(folder, *(word for one in asked for word in ("--set", one)))
    assert status == 2
    assert "99 GPUs are asked for" in output
    assert "Traceback" not in output
    assert not (folder / "results").exists()


def test_nothing_imports_ray_before_its_environment_is_set():
    """Ray reads some of its environment variables when it is imported."""
    code = "import rllib_minestudio.experiments.train, sys; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
