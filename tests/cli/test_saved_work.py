"""What an earlier version saved is evaluated, played and resumed by this one.

`saved_work/README.md` says which version made it, and how. A change that cannot keep this promise
has to refuse such work by name, and say so here.
"""

import json
import math
import tarfile
from pathlib import Path

import numpy as np
import pytest
from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_minestudio import MineStudioEnv
from rllib_minestudio.algorithms import MineStudioPPO
from rllib_minestudio.checkpoints.record import read_record
from rllib_minestudio.evaluation.evaluate import evaluate
from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions
from rllib_minestudio.evaluation.evaluation_summary import Summary
from rllib_minestudio.evaluation.inference import Policy
from rllib_minestudio.evaluation.policies import play_episodes
from rllib_minestudio.evaluation.policy_loading import evaluation_config, load_policy
from rllib_minestudio.experiments.outputs.run_curves import read_history
from rllib_minestudio.experiments.running.resume import run_to_resume
from rllib_minestudio.experiments.running.run_record import read_run_record
from rllib_minestudio.recordings import find_recordings
from tests.processes import run_rllib

ARCHIVES = sorted((Path(__file__).parent / "saved_work").glob("*.tar.xz"))
LENGTH = 20
"""Of every episode: a time limit."""


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def saved(request, tmp_path_factory):
    """The folder in which that version worked."""
    folder = tmp_path_factory.mktemp("saved_work")
    with tarfile.open(request.param) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def checkpoint(saved):
    (checkpoint,) = saved.glob("results/saved/*/MineStudioPPO_*/checkpoint_*")
    return checkpoint


def test_there_is_saved_work():
    assert ARCHIVES


def test_a_checkpoint_is_evaluated(saved, checkpoint, local_ray):
    policy = load_policy(checkpoint)
    config = evaluation_config(policy.config, num_env_runners=0)
    group = EnvRunnerGroup(config=config, local_env_runner=True)
    try:
        summary = evaluate(
            group,
            EvaluationOptions.from_mapping({"episodes": 2}),
            weights=policy.weights,
            policy=policy.identity,
            config={},
        )
    finally:
        group.stop()
    assert not summary.failures
    assert [episode.length for episode in summary.episodes] == [LENGTH] * 2
    before = Summary.load(saved / "evaluation")
    assert before.to_json()["policy"]["weights"] == policy.identity["weights"]


def test_a_checkpoint_plays(checkpoint):
    config = load_policy(checkpoint).config
    env = MineStudioEnv(config.env_config)
    assert play_episodes(env, Policy.load(checkpoint), 1, seed=1) == [0.0]
    env.close()


def test_training_goes_on_from_a_checkpoint(checkpoint, local_ray):
    assert read_record(checkpoint).iteration == 2
    weights = load_policy(checkpoint).weights
    algorithm = MineStudioPPO.from_checkpoint(str(checkpoint))
    try:
        restored = algorithm.get_module().get_state()
        for name, array in weights.items():
            np.testing.assert_array_equal(restored[name], array, err_msg=name)
        result = algorithm.train()
    finally:
        algorithm.stop()
    assert result["training_iteration"] == 3
    assert math.isfinite(result["learners"]["default_policy"]["policy_loss"])


def test_results_are_read(saved, checkpoint):
    history = read_history(checkpoint.parent)
    assert [result["training_iteration"] for result in history] == [1, 2]
    folder = run_to_resume(saved / "results" / "saved")
    assert read_run_record(folder).experiment["stop"] == {"training_iteration": 2}
    assert json.loads((folder / "summary.json").read_text())["best"]["iterations"] == 2
    (recording, _) = find_recordings(saved / "evaluation")
    assert len(recording) == LENGTH == len(list(recording.frames())) - 1
    assert len(list(recording.infos())) == LENGTH + 1


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_command_line_evaluates_plays_and_resumes(saved, checkpoint):
    for arguments in (
        ["evaluate", checkpoint, "--episodes", "2", "--out", "again"],
        ["play", "saved.yaml", "--agent", checkpoint],
        ["train", "file", "saved.yaml", "--resume", "--stop", "training_iteration=3"],
    ):
        status, output = run_rllib(saved, *map(str, arguments))
        assert status == 0, output
        assert "Traceback" not in output
    assert len(read_history(checkpoint.parent)) == 3
