"""Logging to TensorBoard and Weights & Biases through Tune's loggers, with videos."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from ray.air.integrations.wandb import WandbLoggerCallback
from ray.tune.logger import TBXLoggerCallback

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


# -------------------------------- logging to TensorBoard through Tune's logger, with videos as GIFs

TAG = "videos/agent"

EVERY_NTH_FRAME = 4
GIF_FRAMES_PER_SECOND = 5
"""The game's 20 frames per second, of which every fourth is shown."""

MAX_FRAMES = 150


class TensorBoard(TBXLoggerCallback):
    """A logger that writes all numbers of a result, and the agent's videos, to an event file."""

    def __init__(self) -> None:
        super().__init__()
        self._videos = NewVideos()

    def log_trial_start(self, trial: Any) -> None:
        """Open the trial's event file."""
        self._videos.skip_present(trial)
        super().log_trial_start(trial)

    def log_trial_result(self, iteration: int, trial: Any, result: dict[str, Any]) -> None:
        """Write a result, and the videos finished since the last result."""
        super().log_trial_result(iteration, trial, result)
        self._write_videos(trial)

    def log_trial_end(self, trial: Any, failed: bool = False) -> None:
        """Write the last videos, and close the event file."""
        self._write_videos(trial)
        super().log_trial_end(trial, failed)

    def _write_videos(self, trial: Any) -> None:
        writer = self._trial_writer.get(trial)
        for video in self._videos.of(trial) if writer is not None else ():
            writer.file_writer.add_summary(_gif_summary(video), iteration_of(video))
            writer.flush()


def _gif_summary(video: Path) -> Any:
    """Return a video as an image summary of TensorBoard, which may be an animated GIF."""
    from tensorboardX.proto.summary_pb2 import Summary

    frames = _some_frames(video)
    height, width = frames[0].shape[:2]
    picture = Summary.Image(
        height=height, width=width, colorspace=3, encoded_image_string=encode_gif(frames)
    )
    return Summary(value=[Summary.Value(tag=TAG, image=picture)])


def _some_frames(video: Path) -> list[NDArray[np.uint8]]:
    """Decode every n-th frame of a video, (height, width, 3) RGB."""
    frames = []
    with av.open(str(video)) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number % EVERY_NTH_FRAME == 0:
                frames.append(frame.to_ndarray(format="rgb24"))
            if len(frames) == MAX_FRAMES:
                break
    return frames


def encode_gif(frames: list[NDArray[np.uint8]]) -> bytes:
    """Encode RGB frames, (height, width, 3), as a GIF with 256 fixed colours."""
    buffer = io.BytesIO()
    height, width = frames[0].shape[:2]
    with av.open(buffer, "w", format="gif") as container:
        stream = container.add_stream("gif", rate=GIF_FRAMES_PER_SECOND)
        stream.width, stream.height, stream.pix_fmt = width, height, "rgb8"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode(None))
    return buffer.getvalue()
