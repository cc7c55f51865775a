"""`rllib train file`, as a person runs it: real processes, real Ray, a tiny agent."""

import json
import os
import signal
import subprocess
import sys
import time

import av
import pytest
import yaml

TINY = {
    "tiny": {
        "run": "MineStudioPPO",
        "env": "MineStudioEnv",
        "stop": {"training_iteration": 4},
        "checkpoint_config": {"checkpoint_frequency": 1, "num_to_keep": 2},
        "summary": {"random_policy_episodes": 2, "video_episodes": 1},
        "config": {
            "seed": 1,
            "env_config": {
                "obs_size": [64, 64],
                "render_size": [64, 36],
                "num_empty_frames": 1,
                "callbacks": [{"JudgeReset": {"time_limit": 20}}],
            },
            "model": {
                "preset": "nano",
                "hidsize": 16,
                "attention_heads": 2,
                "n_recurrence_layers": 1,
                "attention_memory_size": 24,
                "timesteps": 16,
            },
            "num_env_runners": 0,
            "num_envs_per_env_runner": 2,
            "rollout_fragment_length": 32,
            "context_length": 16,
            "fragments_per_iteration": 2,
            "fragments_per_minibatch": 2,
            "prior": None,
            "kl_coeff": 0.0,
            "lr": 1e-3,
        },
    }
}
START_TIMEOUT = 180.0
"""Seconds until a run has written its first checkpoint, kernels compiled and Ray started."""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    return tmp_path


def rllib(folder, *arguments):
    command = [sys.executable, "-m", "rllib_minestudio.cli.main", "train", "file", "tiny.yaml"]
    return subprocess.Popen(
        [*command, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(process):
    output, _ = process.communicate()
    return process.returncode, output


def wait_for(condition, process):
    deadline = time.monotonic() + START_TIMEOUT
    while not condition():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline, "the run does not get going"
        time.sleep(0.2)


def has_saved_its_second_checkpoint(results):
    """Return whether Tune's notes, from which it resumes, are younger than a second checkpoint."""
    notes = [path.stat().st_mtime for path in results.glob("*/experiment_state-*.json")]
    saved = [
        path.stat().st_mtime
        for path in results.glob("*/*/checkpoint_*/rllib_checkpoint.json")
        if not path.parent.name.endswith("_000000")
    ]
    return bool(notes and saved) and max(notes) > min(saved)


@pytest.mark.slow
def test_a_run_leaves_a_summary_a_curve_and_a_video(folder):
    status, output = finished(rllib(folder))
    assert status == 0, output
    assert "Traceback" not in output
    for part in ("measuring the random policy: done", "iteration    4", "random policy", "video"):
        assert part in output
    (run,) = (folder / "results" / "tiny").iterdir()
    summary = json.loads((run / "summary.json").read_text())
    assert summary["best"]["iterations"] == 4
    assert len(summary["random_policy"]["returns"]) == 2
    assert os.path.isdir(summary["best"]["checkpoint"])
    assert (run / "learning_curve.png").stat().st_size > 0
    with av.open(str(run / "agent.mp4")) as video:
        assert sum(1 for _ in video.decode(video=0)) == 20


@pytest.mark.slow
def test_a_killed_run_resumes_from_its_last_checkpoint(folder):
    results = folder / "results" / "tiny"
    process = rllib(folder, "--stop", "training_iteration=100000")
    wait_for(lambda: has_saved_its_second_checkpoint(results), process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (run,) = results.iterdir()
    measured = (run / "random_policy.json").read_text()

    process = rllib(folder, "--resume")
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("iteration"):
            break
    process.send_signal(signal.SIGINT)
    status, output = finished(process)
    output = "".join(lines) + output
    assert status == 0, output
    assert "Traceback" not in output
    assert int(lines[-1].split()[1]) > 2, "it went on, and did not begin anew"
    assert (run / "summary.json").is_file()
    assert (run / "random_policy.json").read_text() == measured


@pytest.mark.slow
def test_a_grid_of_two_learning_rates_ends_in_a_table(folder):
    options = ["--set", "lr={grid_search: [1e-4, 1e-3]}", "--set", "summary.video_episodes=0"]
    status, output = finished(rllib(folder, *options, "--stop", "training_iteration=2"))
    assert status == 0, output
    assert "tiny: 2 trials" in output
    (run,) = (folder / "results" / "tiny").iterdir()
    trials = json.loads((run / "summary.json").read_text())["trials"]
    assert sorted(trial["settings"]["lr"] for trial in trials) == [1e-4, 1e-3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "lrr=1"], "tiny.config.lrr: unknown key. Did you mean 'lr'?"),
        (["--resume"], "there is no run to resume"),
    ],
)
def test_bad_input_is_one_message_and_status_2(folder, arguments, message):
    status, output = finished(rllib(folder, *arguments))
    assert status == 2
    assert message in output
    assert "Traceback" not in output
    assert not (folder / "results").exists()
