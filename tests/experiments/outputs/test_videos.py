"""Films that cannot be made are reported, and nothing else happens."""

import logging
from types import SimpleNamespace

from rllib_minestudio.checkpoints.checkpoint import POLICY_FOLDER
from rllib_minestudio.experiments.videos import RecordVideos, videos_of


class TrialFacts:
    """What the callback looks at in one of Tune's trials."""

    def __init__(self, folder, iteration):
        self.trial_id = "a"
        self.path = str(folder)
        self.config = {"env": "MineStudioEnv", "env_config": {}}
        self.last_result = {"training_iteration": iteration}


def save(callback, trial, checkpoint):
    callback.on_checkpoint(0, [], trial, SimpleNamespace(path=str(checkpoint)))


def test_a_film_that_fails_is_reported_and_its_weights_are_put_away(local_ray, tmp_path, caplog):
    module = tmp_path / "checkpoint" / POLICY_FOLDER
    module.mkdir(parents=True)
    (module / "metadata.json").write_text("no module")
    callback, trial = RecordVideos(2, None), TrialFacts(tmp_path, 4)
    with caplog.at_level(logging.WARNING):
        save(callback, trial, tmp_path / "checkpoint")
        assert (tmp_path / "videos" / ".weights_000004" / POLICY_FOLDER).is_dir()
        callback.on_trial_complete(0, [], trial)
    assert "A video could not be made" in caplog.text
    assert list((tmp_path / "videos").iterdir()) == []


def test_a_checkpoint_without_a_module_is_reported(tmp_path, caplog):
    save(RecordVideos(2, None), TrialFacts(tmp_path, 4), tmp_path / "checkpoint")
    assert "No video of iteration 4" in caplog.text


def test_other_iterations_are_not_filmed(tmp_path, caplog):
    save(RecordVideos(2, None), TrialFacts(tmp_path, 3), tmp_path / "checkpoint")
    assert caplog.text == "" and videos_of(tmp_path) == []


def test_weights_left_behind_by_a_kill_are_cleared(tmp_path):
    (tmp_path / "videos" / ".weights_000002" / "learner_group").mkdir(parents=True)
    RecordVideos(2, None).on_trial_start(0, [], TrialFacts(tmp_path, 0))
    assert list((tmp_path / "videos").iterdir()) == []
