"""Logging to Weights & Biases through Tune's logger, with videos and the code's identity."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ray.air.integrations.wandb import WandbLoggerCallback

from rllib_minestudio.experiments.result_metrics import ITERATION
from rllib_minestudio.experiments.videos import NewVideos, iteration_of
from rllib_minestudio.foundation.values import recordable


class WeightsAndBiases(WandbLoggerCallback):
    """A logger with one W&B run per trial, which a resumed trial continues.

    Args:
        options: `project`, `name`, `group`, `mode`, ... (`trackers.WandbOptions`).
        identity: Versions and code, stored with the trial's config.
        many_trials: Whether to append the trial's id to `name`.
    """

    def __init__(
        self, options: Mapping[str, Any], identity: Mapping[str, Any], many_trials: bool
    ) -> None:
        """Set W&B's mode for this process and its child processes."""
        known = dict(options)
        self._name = known.pop("name", None)
        self._identity = dict(identity)
        self._many_trials = many_trials
        self._videos = NewVideos()
        if "mode" in known:
            os.environ["WANDB_MODE"] = known["mode"]
        super().__init__(resume="allow", **known)

    def log_trial_start(self, trial: Any) -> None:
        """Start the trial's W&B run."""
        if self._name is not None:
            suffix = f"-{trial.trial_id}" if self._many_trials else ""
            self.kwargs["name"] = f"{self._name}{suffix}"
        self.kwargs["config"] = {**recordable(trial.config), **self._identity}
        self._videos.skip_present(trial)
        super().log_trial_start(trial)

    def log_trial_result(self, iteration: int, trial: Any, result: dict[str, Any]) -> None:
        """Log a result, and the videos finished since the last result."""
        super().log_trial_result(iteration, trial, {**result, **self._new_videos(trial)})

    def log_trial_end(self, trial: Any, failed: bool = False) -> None:
        """Log the last videos, and end the trial's W&B run."""
        last = self._new_videos(trial)
        if last:
            number = (trial.last_result or {}).get(ITERATION, 0)
            super().log_trial_result(0, trial, {ITERATION: number, **last})
        super().log_trial_end(trial, failed)

    def on_experiment_end(self, trials: Sequence[Any], **info: Any) -> None:
        """Wait for W&B's processes, and copy their last output to the trials' folders.

        Tune's last copy from its staging folder happens before these processes have ended, so an
        offline run could lack its last video.
        """
        super().on_experiment_end(list(trials), **info)
        for trial in trials:
            written = Path(trial.local_path, "wandb")
            if written.is_dir():
                shutil.copytree(written, Path(trial.path, "wandb"), dirs_exist_ok=True)

    def _new_videos(self, trial: Any) -> dict[str, Any]:
        """Return the newest of the new videos as a W&B object, captioned with its iteration."""
        new: list[Path] = self._videos.of(trial)
        if not new:
            return {}
        import wandb

        newest = new[-1]
        caption = f"iteration {iteration_of(newest)}"
        return {"videos": {"agent": wandb.Video(str(newest), caption=caption, format="mp4")}}
