"""`--resume`: what may change, what is reported, and that no kill costs more than it must."""

import copy
import itertools
import os
import random
import re
import signal
import time
from dataclasses import replace

import pytest
import yaml

from rllib_minestudio.checkpoints.lookup import complete_checkpoints
from rllib_minestudio.checkpoints.record import NUMERICS
from rllib_minestudio.errors import CheckpointError, InvalidOptionsError
from rllib_minestudio.experiments.experiment_file import load_experiments
from rllib_minestudio.experiments.plan import make_plan
from rllib_minestudio.experiments.resume_options import (
    ChangedOption,
    RunRecord,
    config_change,
    differences,
    read_run_record,
    recorded,
    resumed_experiment,
    resumed_record,
    write_run_record,
)
from rllib_minestudio.foundation.console import stdout
from tests.cli.tiny import TINY
from tests.processes import rllib, run_rllib

KILLS = int(os.environ.get("RLLIB_TEST_KILLS", "2"))
"""How often the driver is killed; more take about half a minute each."""

SAVE_INTERVAL = 4

TRAIN = ("train", "file", "tiny.yaml")

COUNT_ITERATIONS = """
from ray.rllib.callbacks.callbacks import RLlibCallback

class Count(RLlibCallback):
    def on_train_result(self, *, result, **kwargs):
        with open({path!r}, "a") as file:
            file.write("%d\\n" % result["training_iteration"])
"""


def test_differences_are_told_by_dotted_path_into_lists_of_mappings():
    then = {"lr": 1, "env": {"callbacks": [{"A": {"x": 1}}], "size": [64, 64]}, "gone": 1}
    now = {"lr": 1, "env": {"callbacks": [{"A": {"x": 2}}, "B"], "size": [64, 32]}}
    assert differences(then, now) == [
        ChangedOption("env.callbacks.0.A.x", 1, 2),
        ChangedOption("env.size", [64, 64], [64, 32]),
        ChangedOption("gone", 1, "(absent)"),
        ChangedOption("env.callbacks.1", "(absent)", "B"),
    ]


@pytest.fixture
def started(tmp_path):
    """The file of a run that was started with `--set gamma=0.9`, and the run's folder."""
    file = tmp_path / "tiny.yaml"
    experiment = copy.deepcopy(TINY)
    experiment["tiny"]["config"]["lr"] = {"grid_search": [1e-4, 1e-3]}
    file.write_text(yaml.safe_dump(experiment))
    record = RunRecord(
        recorded(load_experiments(file)[0]), recorded(load_experiments(file, ["gamma=0.9"])[0])
    )
    write_run_record(tmp_path, record)
    return file, tmp_path


def resume(started, *sets):
    """What `--resume --set ...` prepares: the plan, and the new note of the run."""
    file, folder = started
    (in_file,) = load_experiments(file)
    experiment = resumed_experiment(in_file, folder, sets)
    plan = make_plan(experiment)
    return plan, resumed_record(folder, in_file, experiment, plan, sets)


def test_a_resumed_run_keeps_what_it_was_started_with(started):
    plan, record = resume(started)
    assert plan.example.gamma == 0.9
    assert record == read_run_record(started[1])


def test_options_set_on_resume_are_applied_to_each_trial_and_reported(started):
    with stdout.capture() as capture:
        plan, record = resume(
            started, "gamma=0.8", "env_config.callbacks.0.JudgeReset.time_limit=30"
        )
    rows = [" ".join(line.split()) for line in capture.get().splitlines()]
    assert "config.gamma 0.9 -> 0.8 (applied)" in rows
    assert "config.env_config.callbacks.0.JudgeReset.time_limit 20 -> 30 (applied)" in rows
    assert record.experiment["config"]["gamma"] == 0.8
    trial = {**plan.space, "lr": 1e-4, "gamma": 0.9, "only_here": 1}
    sets = ["gamma=0.8", "env_config.callbacks.0.JudgeReset.time_limit=30"]
    changed = config_change(plan, sets)(trial)
    assert changed["gamma"] == 0.8 and changed["lr"] == 1e-4 and changed["only_here"] == 1
    assert changed["env_config"]["callbacks"] == [{"JudgeReset": {"time_limit": 30}}]


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("weight_decay=0.1", 0.1),
        ("adam_eps=1e-5", 1e-5),
        ('lr_factors={"net.*": 0.5}', {"net.*": 0.5}),
        ('model.freeze=["net.img_process.*"]', ["net.img_process.*"]),
    ],
)
def test_the_optimizers_options_and_what_learns_may_change(started, assignment, value):
    plan, record = resume(started, assignment)
    option, *within = assignment.partition("=")[0].split(".")
    for config in (record.experiment["config"], config_change(plan, [assignment])(plan.space)):
        changed = config[option]
        for key in within:
            changed = changed[key]
        assert changed == value


def test_a_section_that_stands_for_options_is_applied_on_resume(started):
    file, folder = started
    experiment = yaml.safe_load(file.read_text())
    experiment["tiny"]["evaluation"] = {"interval": 5}
    file.write_text(yaml.safe_dump(experiment))
    (in_file,) = load_experiments(file)
    make_plan(in_file)
    write_run_record(folder, RunRecord(recorded(in_file), recorded(in_file)))
    plan, record = resume(started, "evaluation.interval=7")
    assert record.experiment["evaluation"] == {"interval": 7}
    assert config_change(plan, ["evaluation.interval=7"])(plan.space)["evaluation_interval"] == 7


@pytest.mark.parametrize(
    ("assignment", "reason"),
    [
        ("model.hidsize=32", "from 16 to 32 in a run that is resumed: the saved weights belong"),
        ("zero_init_value_head=true", "it counts only when training begins"),
        ("lr=1e-5", "the trials differ in it"),
        ("num_samples=3", "the trials exist already"),
    ],
)
def test_what_would_break_the_saved_state_is_refused_with_the_reason(started, assignment, reason):
    with pytest.raises(InvalidOptionsError, match=reason):
        resume(started, assignment)


def test_an_edited_file_is_reported_and_not_applied(started):
    file, _ = started
    file.write_text(file.read_text().replace("time_limit: 20", "time_limit: 25"))
    with stdout.capture() as capture:
        plan, _ = resume(started)
    assert "JudgeReset.time_limit  20 -> 25  (edited in the file: not applied" in capture.get()
    assert plan.example.env_config["callbacks"] == [{"JudgeReset": {"time_limit": 20}}]


def test_other_versions_and_other_code_are_reported(started):
    _, folder = started
    saved = read_run_record(folder)
    code = {**saved.code, "rllib_minestudio": {"commit": "abc", "modified": False}}
    versions = {**saved.versions, "ray": "1.0"}
    write_run_record(folder, RunRecord(saved.file, saved.experiment, versions, code))
    with stdout.capture() as capture:
        resume(started)
    shown = " ".join(capture.get().split())
    assert re.search(r"ray 1.0 -> 2\S+ \(another version\)", shown)
    assert re.search(r"rllib_minestudio.commit abc -> \S+ \(other code\)", shown)


def test_another_revision_of_the_numerics_is_reported(started):
    _, folder = started
    write_run_record(folder, replace(read_run_record(folder), numerics=NUMERICS + 1))
    with stdout.capture() as capture:
        _, record = resume(started)
    assert record.numerics == NUMERICS
    shown = " ".join(capture.get().split())
    assert f"numerics {NUMERICS + 1} -> {NUMERICS} (the learner computes differently)" in shown


def test_an_edited_python_file_is_reported_and_only_what_is_set_is_applied(tmp_path):
    file = tmp_path / "mine.py"
    text = """
from rllib_minestudio import MineStudioPPOConfig
config = MineStudioPPOConfig().training(lr=LR, gamma=0.9, prior=None, kl_coeff=0.0)
config.environment(env_config={"obs_size": [64, 64]}).training(model={"preset": "nano"})
"""
    file.write_text(text.replace("LR", "1e-4"))
    (in_file,) = load_experiments(file)
    write_run_record(tmp_path, RunRecord(recorded(in_file), recorded(in_file)))
    file.write_text(text.replace("LR", "5e-4"))
    with stdout.capture() as capture:
        plan, record = resume((file, tmp_path), "gamma=0.8")
    shown = " ".join(capture.get().split())
    assert "config.gamma 0.9 -> 0.8 (applied)" in shown
    assert "config.lr 0.0001 -> 0.0005 (edited in the file: not applied" in shown
    assert record.experiment["config"]["lr"] == 1e-4
    trial = {**plan.space, "lr": 1e-4}
    assert config_change(plan, ["gamma=0.8"])(trial)["lr"] == 1e-4


@pytest.mark.parametrize("text", [None, "experiment: [1", "a: 1"])
def test_a_run_that_does_not_tell_what_it_was_started_with_is_refused(tmp_path, text):
    if text is not None:
        (tmp_path / "experiment.yaml").write_text(text)
    with pytest.raises(CheckpointError):
        read_run_record(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600 + 60 * KILLS)
def test_a_driver_killed_at_random_moments_repeats_no_more_than_it_must(tmp_path):
    """The first kill comes while it trains; the others at any time, while it starts as well."""
    log = tmp_path / "iterations.txt"
    (tmp_path / "counting.py").write_text(COUNT_ITERATIONS.format(path=str(log)))
    experiment = copy.deepcopy(TINY)
    experiment["tiny"]["summary"] = {"random_policy_episodes": 0, "video_episodes": 0}
    experiment["tiny"]["checkpoint_config"] = {"save_interval": SAVE_INTERVAL, "num_to_keep": 2}
    experiment["tiny"]["config"]["callbacks"] = "counting.Count"
    experiment["tiny"]["config"]["num_env_runners"] = 1
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(experiment))
    choose = random.Random(0)

    process = rllib(tmp_path, *TRAIN, "--stop", "training_iteration=100000")
    while not log.is_file():
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.1)
    for kill in range(KILLS):
        if kill > 0:
            process = rllib(tmp_path, *TRAIN, "--resume")
        time.sleep(choose.uniform(0.0, 8.0))
        assert process.poll() is None, process.stdout.read()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        time.sleep(1.0)  # until Ray has noticed, too
    last = max(map(int, log.read_text().split())) + SAVE_INTERVAL + 1
    stop = ("--stop", f"training_iteration={last}")
    status, output = run_rllib(tmp_path, *TRAIN, "--resume", *stop)
    assert status == 0, output
    assert "Traceback" not in output

    trained = [int(line) for line in log.read_text().split()]
    assert set(trained) == set(range(1, last + 1)) and trained[-1] == last
    steps_back = [a - b + 1 for a, b in itertools.pairwise(trained) if b != a + 1]
    assert len(steps_back) <= KILLS
    assert all(0 <= repeated <= SAVE_INTERVAL for repeated in steps_back), steps_back
    (trial,) = tmp_path.glob("results/tiny/*/MineStudioPPO_*")
    newest = complete_checkpoints(trial)
    assert newest[-1].record.iteration == last
    assert len(newest) == 2, "and nothing is left of those that were cut short"
    # The same options again: it is at its end, and no iteration is added.
    status, output = run_rllib(tmp_path, *TRAIN, "--resume")
    assert status == 0 and "reached its end already" in output
