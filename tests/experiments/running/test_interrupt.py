"""Ctrl-C and SIGTERM: what was trained is saved, and the run goes on from there."""

import copy
import os
import re
import signal
import time
from types import SimpleNamespace

import pytest
import yaml
from ray import tune
from ray.train._internal.checkpoint_manager import _CheckpointManager
from ray.tune.experiment import Trial

from rllib_minestudio.checkpoints.lookup import complete_checkpoints
from rllib_minestudio.experiments import trial_checkpoints as module
from rllib_minestudio.experiments.trial_checkpoints import SAVING, SIGNALS, SaveOnInterrupt
from tests.cli.tiny import TINY
from tests.processes import Process, rllib, run_rllib

TRAIN = ("train", "file", "tiny.yaml")
SHARED = tune.CheckpointConfig(checkpoint_frequency=0)


def trial(name, status=Trial.RUNNING):
    metadata = SimpleNamespace(checkpoint_manager=_CheckpointManager(SHARED))
    return SimpleNamespace(trial_id=name, status=status, run_metadata=metadata)


def save_intervals(trials):
    managers = (trial.run_metadata.checkpoint_manager for trial in trials)
    return [manager.checkpoint_config.checkpoint_frequency for manager in managers]


@pytest.fixture
def ended(monkeypatch):
    """The signals that were sent to Tune."""
    sent = []
    monkeypatch.setattr(module.signal, "raise_signal", sent.append)
    return sent


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]
)
def test_the_run_ends_when_every_trial_that_trains_has_saved(number, name, ended, capsys):
    interrupt = SaveOnInterrupt()
    trials = [trial("a"), trial("b"), trial("waits", Trial.PENDING)]
    interrupt.on_step_begin(0, trials)
    assert ended == []
    with interrupt.listening():
        os.kill(os.getpid(), number)
    assert interrupt.requested
    interrupt.on_step_begin(1, trials)
    assert f"{name}: {SAVING}" in capsys.readouterr().out
    assert save_intervals(trials) == [1, 1, 1]  # the next iteration is saved
    interrupt.on_trial_save(2, trials, trials[0])
    assert save_intervals(trials) == [0, 1, 1]
    interrupt.on_step_begin(3, trials)
    assert ended == []
    trials[1].status = Trial.ERROR  # a trial that fails has nothing to wait for
    interrupt.on_step_begin(4, trials)
    assert ended == [signal.SIGUSR1]
    assert capsys.readouterr().out == ""


def test_a_second_time_ends_at_once_and_python_is_as_it_was_afterwards():
    before = [signal.getsignal(number) for number in SIGNALS]
    interrupt = SaveOnInterrupt()
    with pytest.raises(KeyboardInterrupt), interrupt.listening():
        assert os.environ["TUNE_DISABLE_SIGINT_HANDLER"] == "1"
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert "TUNE_DISABLE_SIGINT_HANDLER" not in os.environ


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheduler", "at_end", "send"),
    [
        # Ctrl-C reaches the whole group, as from a terminal; SIGTERM the process that is known.
        ({}, True, lambda process: os.killpg(process.pid, signal.SIGINT)),
        ({"asha": {"grace_period": 1, "max_t": 10**9}}, False, Process.terminate),
    ],
    ids=["Ctrl-C", "SIGTERM"],
)
def test_what_was_trained_is_saved_and_resume_says_where_it_goes_on(
    tmp_path, scheduler, at_end, send
):
    experiment = copy.deepcopy(TINY)
    tiny = experiment["tiny"]
    tiny["summary"] = {"random_policy_episodes": 0, "video_episodes": 0}
    tiny["checkpoint_config"] = {"save_interval": 0, "checkpoint_at_end": at_end}
    tiny["scheduler"] = scheduler
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(experiment))
    stop = ("--stop", "training_iteration=100000")
    process = rllib(tmp_path, *TRAIN, *stop, own_session=True)
    printed = []
    for line in process.stdout:
        printed.append(line)
        if re.match(r" +\d+ +[\d,]+ ", line):  # of an iteration
            break
    time.sleep(0.5)
    send(process)
    rest, _ = process.communicate(timeout=300)
    output = "".join(printed) + rest
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert SAVING in output
    (folder,) = tmp_path.glob("results/tiny/*/MineStudioPPO_*")
    (saved,) = complete_checkpoints(folder)
    iteration = saved.record.iteration
    assert f"saved: iteration {iteration}, {iteration * 64:,} steps: {saved.folder}" in output

    stop = ["--stop", f"training_iteration={iteration + 1}"]
    status, output = run_rllib(tmp_path, *TRAIN, "--resume", *stop)
    assert status == 0, output
    assert f"going on from iteration {iteration}, {iteration * 64:,} steps: " in output
    assert f"\n{iteration + 1:>5} " in output
    status, output = run_rllib(tmp_path, *TRAIN, "--resume", *stop)
    assert status == 0 and "nothing to resume: " in output
