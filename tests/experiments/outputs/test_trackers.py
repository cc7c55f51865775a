"""Trackers: what is refused before a run starts, and what they write."""

import io
import socket
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import SimpleNamespace

import av
import numpy as np
import pytest
from ray.air.integrations.wandb import WandbLoggerCallback

from rllib_minestudio.experiments import trackers
from rllib_minestudio.experiments.tracker_loggers import (
    TAG,
    TensorBoard,
    WeightsAndBiases,
    encode_gif,
)
from rllib_minestudio.experiments.trackers import tracker_problems
from rllib_minestudio.experiments.videos import NewVideos
from rllib_minestudio.recordings.video import VideoWriter
from tests.experiments.outputs.event_files import read_events


@pytest.fixture(autouse=True)
def nobody(monkeypatch, tmp_path):
    """Nobody is logged in to W&B, whatever the machine's own state."""
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))


def test_the_default_and_an_offline_run_are_in_order():
    assert tracker_problems({}, "x.trackers") == []
    options = {"tensorboard": False, "wandb": {"project": "cows", "mode": "offline", "tags": ["a"]}}
    assert tracker_problems(options, "x.trackers") == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wand": {}}, "x.trackers: unknown tracker 'wand'"),
        ({"tensorbord": True}, "Did you mean 'tensorboard'?"),
        ({"tensorboard": 1}, "x.trackers.tensorboard must be true or false; got 1."),
        ({"wandb": True}, "x.trackers.wandb must be a mapping; got True."),
        ({"wandb": {"projct": "a", "project": "b"}}, "Did you mean 'project'?"),
        ({"wandb": {"project": 3}}, "x.trackers.wandb.project must be a text; got 3."),
        ({"wandb": {"project": "a", "mode": "ofline"}}, "Did you mean 'offline'?"),
        ({"wandb": {"mode": "offline"}}, "x.trackers.wandb.project: is missing"),
        ({"mlflow": {"uri": "x"}}, "x.trackers.mlflow: unknown key 'uri'"),
    ],
)
def test_each_mistake_gets_one_message(options, message):
    problems = [p for p in tracker_problems(options, "x.trackers") if "not installed" not in p]
    (problem,) = problems
    assert message in problem


def test_who_is_not_logged_in_is_told_and_not_asked():
    (problem,) = tracker_problems({"wandb": {"project": "cows"}}, "x.trackers")
    assert "not logged in" in problem and "wandb login" in problem and "mode: offline" in problem


def test_a_key_counts_as_being_logged_in(monkeypatch, server):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", server)
    assert tracker_problems({"wandb": {"project": "cows"}}, "x.trackers") == []


@pytest.mark.parametrize("mode", ["online", "offline", "disabled"])
def test_without_the_package_one_sentence_says_how_to_install_it(mode, monkeypatch):
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    options = {"wandb": {"project": "cows", "mode": mode}}
    (problem,) = tracker_problems(options, "x.trackers")
    assert problem.startswith("x.trackers.wandb: wandb is not installed")
    assert "pip install 'rllib_minestudio[wandb]'" in problem


@pytest.fixture
def server():
    """The address of a server that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_is_gone_is_told_before_anything_starts(mlflow, monkeypatch, server):
    gone = "http://127.0.0.1:9"
    (problem,) = tracker_problems({"mlflow": {"tracking_uri": gone}}, "x.trackers")
    expected = "x.trackers.mlflow.tracking_uri: nothing answers at 'http://127.0.0.1:9' (Connection"
    assert problem.startswith(expected) and "sqlite" in problem
    monkeypatch.setenv("MLFLOW_TRACKING_URI", gone)
    assert tracker_problems({"mlflow": {}}, "x.trackers") == [problem]
    monkeypatch.setenv("WANDB_API_KEY", 40 * "0")
    monkeypatch.setenv("WANDB_BASE_URL", gone)
    (problem,) = tracker_problems({"wandb": {"project": "cows"}}, "x.trackers")
    assert "nothing answers at http://127.0.0.1:9" in problem and "mode: offline" in problem
    offline = {"wandb": {"project": "cows", "mode": "offline"}}
    assert tracker_problems(offline, "x.trackers") == []


@pytest.fixture
def mlflow(monkeypatch):
    """A stand-in for the package; only its version is looked at."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI", "MLFLOW_ALLOW_FILE_STORE"):
        monkeypatch.delenv(name, raising=False)
    package = SimpleNamespace(__version__="3.17.0", __spec__=ModuleSpec("mlflow", None))
    monkeypatch.setitem(sys.modules, "mlflow", package)
    return package


@pytest.mark.parametrize("uri", ["file:///runs/mlruns", "/runs/mlruns", "file:/runs/mlruns"])
def test_a_folder_for_mlflow_is_refused_before_anything_starts(mlflow, monkeypatch, uri):
    (problem,) = tracker_problems({"mlflow": {"tracking_uri": uri}}, "x.trackers")
    assert problem == (
        "x.trackers.mlflow.tracking_uri must be a database or a server, since MLflow 3.17.0 writes "
        f"to no folder; got {uri!r}. Write sqlite:////runs/mlruns/mlflow.db, or set "
        "MLFLOW_ALLOW_FILE_STORE=true."
    )
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert tracker_problems({"mlflow": {}}, "x.trackers") == [problem]


def test_what_mlflow_takes_is_in_order(mlflow, monkeypatch, server):
    for uri in ("sqlite:////runs/mlflow.db", server, "databricks"):
        assert tracker_problems({"mlflow": {"tracking_uri": uri}}, "x.trackers") == []
    folder = {"mlflow": {"tracking_uri": "file:///runs/mlruns"}}
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    assert tracker_problems(folder, "x.trackers") == []
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE")
    mlflow.__version__ = "3.12.0"
    assert tracker_problems(folder, "x.trackers") == []


@pytest.mark.skipif(find_spec("mlflow") is not None, reason="mlflow is installed")
def test_a_package_that_is_not_installed_is_named():
    (problem,) = tracker_problems({"mlflow": {"experiment_name": "cows"}}, "x.trackers")
    assert problem == "x.trackers.mlflow: mlflow is not installed; pip install mlflow"


def frames(count):
    """A white square that wanders over a green ground."""
    pictures = np.zeros((count, 36, 64, 3), np.uint8)
    pictures[..., 1] = 146
    for number, picture in enumerate(pictures):
        picture[8:16, 4 * number : 4 * number + 8] = 255
    return list(pictures)


def test_a_gif_shows_the_frames_in_order():
    shown = frames(5)
    with av.open(io.BytesIO(encode_gif(shown))) as container:
        decoded = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(decoded) == 5
    for picture, original in zip(decoded, shown, strict=True):
        assert np.abs(picture.astype(int) - original).max() < 40, "256 colours"


class TrialFacts:
    """What a logger looks at in one of Tune's trials."""

    def __init__(self, folder):
        self.trial_id = "a"
        self.path = self.local_path = str(folder)
        self.config = {}
        self.evaluated_params = {}

    def init_local_path(self):
        pass


def make_video(trial_folder, iteration):
    with VideoWriter(trial_folder / "videos" / f"iteration_{iteration:06d}.mp4") as video:
        for frame in frames(8):
            video.add(frame)


def test_tensorboard_gets_numbers_and_new_videos_once(tmp_path):
    trial = TrialFacts(tmp_path)
    make_video(tmp_path, 10)  # of before a resume
    logger = TensorBoard()
    logger.log_trial_start(trial)
    result = {"training_iteration": 20, "env_runners": {"episode_return_mean": 1.5}}
    logger.log_trial_result(0, trial, result)
    make_video(tmp_path, 20)
    logger.log_trial_result(0, trial, {**result, "training_iteration": 21})
    make_video(tmp_path, 30)
    logger.log_trial_end(trial)
    values = [(e.step, v) for e in read_events(tmp_path) for v in e.summary.value]
    returns = [step for step, v in values if v.tag.endswith("env_runners/episode_return_mean")]
    assert returns == [20, 21]
    videos = [(step, v.image) for step, v in values if v.tag == TAG]
    assert [step for step, _ in videos] == [20, 30]
    assert all(image.encoded_image_string.startswith(b"GIF89a") for _, image in videos)
    assert (videos[0][1].width, videos[0][1].height) == (64, 36)


def test_videos_under_the_names_of_unfinished_files_are_not_told(tmp_path):
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / ".iteration_000010.mp4.77.partial").touch()
    (tmp_path / "videos" / ".weights_000010").mkdir()
    assert NewVideos().of(TrialFacts(tmp_path)) == []


def test_what_wandb_writes_last_comes_to_the_trials_folder(tmp_path, monkeypatch):
    staged, stored = tmp_path / "staged", tmp_path / "stored"
    trial = SimpleNamespace(local_path=str(staged), path=str(stored))
    (stored / "wandb" / "offline-run-1").mkdir(parents=True)

    def its_processes_end(self, trials, **info):
        """W&B's process writes the last video when Tune has copied for the last time."""
        folder = staged / "wandb" / "offline-run-1" / "files"
        folder.mkdir(parents=True)
        (folder / "agent_4.mp4").write_bytes(b"frames")
        (staged / "wandb" / "latest-run").symlink_to("offline-run-1")

    monkeypatch.setattr(WandbLoggerCallback, "on_experiment_end", its_processes_end)
    logger = WeightsAndBiases({"project": "cows"}, identity={}, many_trials=False)
    logger.on_experiment_end([trial])
    for name in ("offline-run-1", "latest-run"):
        assert (stored / "wandb" / name / "files" / "agent_4.mp4").read_bytes() == b"frames"
