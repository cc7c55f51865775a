"""`rllib evaluate` and `rllib play`: options, and one run of each from end to end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
import yaml

from rllib_minestudio.cli.main import BAD_INPUT, main
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.summary import Summary
from rllib_minestudio.experiments.played_policy import overridden
from rllib_minestudio.foundation.names import AGENTS, agents_help
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.weights import export_network
from rllib_minestudio.recordings import find_recordings
from tests.processes import run_rllib

SIZES = {
    "img_shape": [64, 64, 3],
    "hidsize": 16,
    "attention_heads": 2,
    "n_recurrence_layers": 1,
    "attention_memory_size": 24,
    "timesteps": 16,
    "impala_width": 0.25,
}
"""Of a network that takes a moment."""


def task(folder, run="MineStudioPPO", **options):
    """A task that takes a moment."""
    config = {
        "env_config": {
            "obs_size": [64, 64],
            "render_size": [128, 72],
            "num_empty_frames": 1,
            "callbacks": [{"JudgeReset": {"time_limit": 12}}],
        },
        "model": {"preset": "nano"},
        **options,
    }
    summary = {"random_policy_episodes": 0, "video_episodes": 0}
    file = folder / "short.yaml"
    file.write_text(yaml.dump({"short": {"run": run, "summary": summary, "config": config}}))
    return str(file)


def test_an_agent_is_watched(tmp_path, capsys):
    out = tmp_path / "plays"
    arguments = ["play", task(tmp_path), "--agent", "random", "--episodes", "2"]
    assert main([*arguments, "--out", str(out)]) == 0
    first, second = find_recordings(out)
    assert len(first) == len(second) == 12
    assert next(first.frames()).shape == (216 + 44, 384, 3)  # 128x72, enlarged for the overlay
    assert "returns: 0, 0" in capsys.readouterr().out


def test_packages_play_and_episodes_are_numbered_on(tmp_path, capsys):
    arguments = ["play", task(tmp_path), "--out", str(tmp_path / "plays")]
    assert main([*arguments, "--agent", "perfect-hunter", "--episodes", "2"]) == 0
    assert "--deterministic takes" not in capsys.readouterr().err
    assert main([*arguments, "--agent", "package:hunter_nano", "--deterministic"]) == 0
    assert "one fell from 7.1 cows per episode to 0.25" in capsys.readouterr().err.replace(
        "\n", " "
    )
    names = [recording.path.name for recording in find_recordings(tmp_path / "plays")]
    assert names == ["episode-00000", "episode-00001", "episode-00002"]


@pytest.mark.parametrize("command", ["play", "record"])
def test_play_and_record_know_the_same_agents(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out
    assert agents_help() in shown and list(AGENTS) == [
        "hunter",
        "perfect-hunter",
        "toolmaker",
        "practised-toolmaker",
        "random",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--agent", "."], "is a folder without a checkpoint: '.' holds short.yaml."),
        (["--agent", "nowhere/latest"], "names no checkpoint: '.' has no 'nowhere'"),
        (["--agent", "shor.yaml"], "There is no experiment file 'shor.yaml'. Did you mean"),
        (["--agent", "package:hunter_nan"], "Did you mean 'hunter_nano'"),
        (["--agent", "random", "--deterministic"], "the agent 'random' is scripted"),
    ],
)
def test_who_cannot_play_is_told(tmp_path, capsys, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["play", task(tmp_path), *words]) == BAD_INPUT
    assert message in " ".join(capsys.readouterr().err.split())


def test_weights_that_played_nowhere_cannot_be_evaluated(tmp_path, capsys):
    export_network(VPTNetwork(VPTConfig(**SIZES)), tmp_path / "weights")
    words = ["evaluate", str(tmp_path / "weights"), "--out", str(tmp_path / "out")]
    assert main(words) == BAD_INPUT
    said = " ".join(capsys.readouterr().err.split())
    assert "does not say in which environment they played (it has no playing.yaml)" in said


@pytest.mark.parametrize(
    "words, message",
    [
        (["--format", "contractor"], "snapshot_interval must be 0 with format contractor; got 5."),
        (
            ["--set", "env_config.engine=minecraft"],
            "only MineStudioEnv with engine: voxel has snapshots",
        ),
    ],
)
def test_record_saves_games_only_where_it_can(tmp_path, capsys, words, message):
    out = tmp_path / "demos"
    words = ["--episodes", "1", "--out", str(out), "--snapshots", "5", *words]
    assert main(["record", task(tmp_path), *words]) == BAD_INPUT
    assert message in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


def test_record_plays_scripted_agents_only(tmp_path, capsys):
    words = ["--agent", "package:hunter_nano", "--episodes", "1", "--out", str(tmp_path / "demos")]
    assert main(["record", task(tmp_path), *words]) == BAD_INPUT
    assert "recorded by `rllib evaluate CHECKPOINT --record" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, message",
    [
        (["--filter", "kil_entity:cow>=3"], "Did you mean 'kill_entity'"),
        (["--episodes", "0"], "--episodes must be an integer, at least 1; got 0."),
        (["--only", "best"], "or best_K"),
        (["--record", "x", "--format", "minestudo"], "Did you mean 'minestudio'"),
        ([], "is a folder without a checkpoint"),
    ],
)
def test_mistakes_are_told_before_anything_starts(tmp_path, capsys, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", str(tmp_path), *words]) == BAD_INPUT
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_agent_is_refused(tmp_path, capsys):
    assert main(["play", task(tmp_path), "--agent", "hunte"]) == BAD_INPUT
    assert "Did you mean 'hunter'" in capsys.readouterr().err.replace("\n", " ")


def test_an_evaluation_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "summary.json").write_text("{}")
    assert main(["evaluate", "somewhere", "--out", str(tmp_path)]) == BAD_INPUT
    assert "holds an evaluation already" in capsys.readouterr().err


def test_options_of_the_environment_are_changed_by_their_path():
    config = {"callbacks": [{"JudgeReset": {"time_limit": 600}}], "seed": 0}
    assignments = ["env_config.callbacks.0.JudgeReset.time_limit=9", "config.env_config.seed=4"]
    changed = overridden(config, assignments)
    assert changed == {"callbacks": [{"JudgeReset": {"time_limit": 9}}], "seed": 4}
    assert config["callbacks"][0]["JudgeReset"]["time_limit"] == 600


def test_an_element_of_a_list_is_replaced_and_other_options_are_refused():
    config = {"callbacks": [{"JudgeReset": {"time_limit": 600}}, "FastReset"]}
    changed = overridden(config, ["env_config.callbacks.0={PrevAction: {}}"])
    assert changed == {"callbacks": [{"PrevAction": {}}, "FastReset"]}
    with pytest.raises(InvalidOptionsError, match="--set lr: only options of the env"):
        overridden(config, ["lr=4"])
    with pytest.raises(InvalidOptionsError, match=r"in full, such as --set env_config.seed=VALUE"):
        overridden(config, ["seed=4"])
    with pytest.raises(InvalidOptionsError, match=r"such as --set env_config.seed=VALUE"):
        overridden(config, ["config.seed=4"])


def run(folder, *arguments):
    """Run `rllib` in a process of its own, whose Ray is its own, too."""
    status, output = run_rllib(folder, *arguments)
    assert status == 0, output
    return output


def checkpoint_in(results):
    return str(next(results.rglob("rllib_checkpoint.json")).parent)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A checkpoint that began with a file's weights, and an evaluation of it in `one`."""
    folder = tmp_path_factory.mktemp("evaluated")
    export_network(VPTNetwork(VPTConfig(**SIZES)), folder / "weights")
    file = task(folder, model={"weights": str(folder / "weights")}, rollout_fragment_length=8)
    words = ["--set", "fragments_per_iteration=2", "--set", "num_envs_per_env_runner=2"]
    words += ["--set", "vf_warmup_iterations=0", "--set", "entropy_coeff=1", "--set", "lr=0.01"]
    words += ["--stop", "training_iteration=1", "--out", "results"]
    run(folder, "train", "file", file, *words)
    common = ["evaluate", checkpoint_in(folder / "results"), "--episodes", "3"]
    common += ["--filter", "length>=12"]
    run(folder, *common, "--record", "one", "--kl-to", "prior")
    return folder, common


@pytest.mark.slow
def test_an_evaluation_is_compared_with_another(evaluated):
    folder, common = evaluated
    run(folder, *common, "--out", "two", "--workers", "1", "--compare", "one")
    one, two = Summary.load(folder / "one"), Summary.load(folder / "two")
    assert one.rate == two.rate and one.rate.num_yes == 3
    assert [e.undiscounted_return for e in one.episodes] == [
        e.undiscounted_return for e in two.episodes
    ]
    assert json.loads((folder / "one" / "summary.json").read_text())["policy"]["weights"]
    assert json.loads((folder / "two" / "comparison.json").read_text())["pairs"] == 3
    assert "McNemar" in (folder / "two" / "summary.html").read_text()


@pytest.mark.slow
def test_recordings_tell_how_far_the_policy_is_from_its_prior(evaluated):
    folder, _ = evaluated
    recordings = list(find_recordings(folder / "one"))
    assert len(recordings) == 3
    for recording in recordings:  # a few steps of the optimizer away
        assert 1e-5 < recording.steps["kl"].mean() < 1


@pytest.fixture
def disk(tmp_path):
    """Mounts a disk of 16 kB; arguments are options of mount."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(*options):
        words = ("-t", "tmpfs", "-o", ",".join(("size=16k", *options)), "tmpfs", str(folder))
        if shutil.which("mount") is None or subprocess.run(("mount", *words)).returncode:
            pytest.skip("may not mount a small disk here")
        return folder

    yield mount
    if os.path.ismount(folder):
        subprocess.run(("umount", str(folder)), check=True)


@pytest.mark.slow
def test_a_full_disk_costs_recordings_and_not_results(evaluated, disk, tmp_path):
    folder, common = evaluated
    (folder / "mine.py").write_text("def is_whole(episode):\n    return episode.length == 12\n")
    words = (*common, "--record", str(disk()), "--out", str(tmp_path / "out"))
    words += ("--filter", "function:mine.is_whole")  # a module in the folder it is called from
    status, output = run_rllib(folder, *words)
    assert status == 1
    assert "cannot be recorded: No space left on device" in " ".join(output.split())
    summary = Summary.load(tmp_path / "out")
    assert summary.rate == Summary.load(folder / "one").rate
    assert any(episode.recording_error for episode in summary.episodes)
    assert not list((tmp_path / "disk").rglob(".*.partial"))


@pytest.mark.slow
def test_a_read_only_folder_is_told_before_anything_starts(evaluated, disk, capsys):
    _, common = evaluated
    assert main([*common, "--record", str(disk("ro"))]) == BAD_INPUT
    assert "cannot be written to: Read-only file system" in " ".join(
        capsys.readouterr().err.split()
    )


@pytest.mark.slow
def test_a_clone_is_evaluated_and_watched_as_well(evaluated, tmp_path):
    """It learns from what the evaluation before recorded, and meets the same worlds."""
    folder, (_, _, *common) = evaluated
    file = task(
        tmp_path,
        run="MineStudioBC",
        model=SIZES,
        input_=str(folder / "one" / "episodes"),
        window_length=4,
        validation_fraction=0.34,
        dataset_num_iters_per_learner=1,
        num_envs_per_env_runner=2,
    )
    words = ["--stop", "training_iteration=1", "--out", "results"]
    run(tmp_path, "train", "file", file, *words)
    checkpoint = checkpoint_in(tmp_path / "results")
    words = ["--out", "clone", "--compare", str(folder / "one")]
    assert "McNemar" in run(tmp_path, "evaluate", checkpoint, *common, *words)
    assert main(["play", file, "--agent", checkpoint, "--out", str(tmp_path / "plays")]) == 0
    (recording,) = find_recordings(tmp_path / "plays")
    assert len(recording) == 12
