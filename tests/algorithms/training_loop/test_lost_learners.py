"""Learners in place of lost ones: those that do not start are ended, and not tried for ever."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rllib_minestudio.algorithms.learner import MineStudioPPOLearner
from rllib_minestudio.algorithms.training_loop.learners import NotStartedError, start_group_like
from rllib_minestudio.errors import PartLostError
from tests.algorithms.actors import is_running, kill, process_of, wait_until
from tests.algorithms.conftest import quick_config

FOLDER = "REHEARSED_STARTS"


class Rehearsed(MineStudioPPOLearner):
    """Notes its starts in a folder; files there say how one goes."""

    def build(self):
        folder = Path(self.config.env_config[FOLDER])
        (folder / f"start of {os.getpid()}").touch()
        if (folder / "die").exists():
            os._exit(1)
        while (folder / "hang").exists():
            time.sleep(0.01)
        super().build()


@pytest.fixture
def algorithm(local_ray, tmp_path):
    config = quick_config(env_config={FOLDER: str(tmp_path)}).learners(
        num_learners=1, num_cpus_per_learner=0.1, learner_class=Rehearsed
    )
    algorithm = config.build_algo()
    yield algorithm
    algorithm.stop()


@pytest.mark.slow
def test_learners_that_hang_in_their_start_are_ended_and_no_others(algorithm, tmp_path):
    (tmp_path / "hang").touch()
    group = algorithm.learner_group
    own = process_of(group._workers[0])
    before = set(tmp_path.glob("start of *"))
    started = set()
    for seconds in (4.0, 30.0):  # the latter on a busy machine
        if not started:
            with pytest.raises(NotStartedError, match="hung"):
                start_group_like(group, within_s=seconds)
            started = set(tmp_path.glob("start of *")) - before
    (process,) = (int(file.name.split()[-1]) for file in started)
    assert wait_until(lambda: not is_running(process), seconds=60)
    assert is_running(own)
    (tmp_path / "hang").unlink()
    algorithm.train()


@pytest.mark.slow
def test_a_run_ends_after_three_starts_that_failed(algorithm, tmp_path):
    algorithm.train()
    (tmp_path / "die").touch()
    before = set(tmp_path.glob("start of *"))
    kill(process_of(algorithm.learner_group._workers[0]))
    with pytest.raises(PartLostError, match="Starting learners in place of lost ones"):
        for _ in range(3):
            algorithm.train()
    assert len(set(tmp_path.glob("start of *")) - before) == 3
