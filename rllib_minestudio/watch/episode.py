"""A recorded episode as a view: any of its steps, with what was done and known there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.foundation.episode_info import SUCCESS, TASK
from rllib_minestudio.foundation.recording_options import OBSERVATION
from rllib_minestudio.recordings import Recording
from rllib_minestudio.recordings.video import Frame
from rllib_minestudio.watch.views import (
    MOST_MOMENTS,
    PROGRESS,
    TASK_TEXT,
    View,
    inventory_of,
    keys_of,
    number,
)

FORWARD = 100
"""Frames up to which decoding on is faster than beginning anew at a key frame."""

MOST_INFOS = 20_000
"""Steps of an episode up to which its infos are kept in memory."""


class EpisodeView(View):
    """A recorded episode.

    Args:
        title: What it is, in words.
        recording: The episode.
    """

    kind = "episode"

    def __init__(self, title: str, recording: Recording) -> None:
        self.title = title
        self.recording = recording
        meta = recording.meta
        seed = meta.get("seed")
        self.seed = seed if isinstance(seed, int) and 0 <= seed < 2**31 else None
        columns = recording.steps
        self._returns = np.concatenate([[0.0], np.cumsum(columns["reward"], dtype=np.float64)])
        self._frames = _Frames(recording, beside=False)
        self._beside = _Frames(recording, beside=True) if recording.has_beside else None
        self._mapper = ActionMapper()
        self._told: dict[str, Any] = {}

    def begin(self, seed: int) -> None:
        """Go to the first frame, whatever the seed."""
        self.seek(0)

    def advance(self) -> None:
        """Go to the next frame."""
        self.seek(self.step + 1)

    def seek(self, step: int) -> None:
        """Go to a frame; the last one if there are fewer."""
        self.step = min(step, len(self.recording))
        self.ended = self._end if self.step == len(self.recording) else ""

    @cached_property
    def _end(self) -> str:
        columns = self.recording.steps
        for name in ("terminated", "truncated"):
            if len(self.recording) and columns[name][-1]:
                return name
        return "end of the recording"

    @cached_property
    def _infos(self) -> list[dict[str, Any]]:
        if len(self.recording) > MOST_INFOS:
            return []
        return list(self.recording.infos())

    @cached_property
    def _moments(self) -> list[tuple[int, float]]:
        reward = self.recording.steps["reward"]
        return [(int(t) + 1, float(reward[t])) for t in np.flatnonzero(reward)[:MOST_MOMENTS]]

    @cached_property
    def _successes(self) -> list[int]:
        """The steps at which the task became solved."""
        told = [info.get(SUCCESS) is True for info in self._infos]
        return [t + 1 for t, (before, now) in enumerate(pairwise(told)) if now and not before]

    def shown(self) -> tuple[dict[str, Any], dict[str, Frame]]:
        """Return the facts about this step, and its frame."""
        recording, t = self.recording, self.step
        columns, meta = recording.steps, recording.meta
        info = self._infos[t] if self._infos else {}
        facts = {
            "kind": self.kind,
            "title": self.title,
            "seed": self.seed,
            "step": t,
            "length": len(recording),
            "ended": self.ended,
            "agent": _player(meta),
            "task": info.get(TASK, meta.get("task")),
            "text": info.get(TASK_TEXT),
            "reward": number(columns["reward"][t - 1]) if t else 0.0,
            "return": number(self._returns[t]),
            "success": info.get(SUCCESS, meta.get("success")),
            "progress": number(info.get(PROGRESS)),
            "moments": self._moments,
            "successes": self._successes,
            "saved": self._last_saved(t),
            "inventory": inventory_of(info),
            "info": info,
        }
        if t < len(recording):
            facts |= keys_of(self._action(t), self._mapper)
            facts["value"] = number(columns["value"][t])
            facts["kl"] = number(columns["kl"][t]) if "kl" in columns else None
        names = ["view", "seen"]
        if (meta.get("video") or {}).get("source") == OBSERVATION:
            names.reverse()
        pictures = [self._frames.at(t), *([self._beside.at(t)] if self._beside else [])]
        return facts, dict(zip(names, pictures, strict=False))

    def _last_saved(self, t: int) -> int | None:
        """The last step up to t after which the whole game is saved; None if there is none."""
        before = bisect_right(self.recording.snapshot_steps, t)
        return self.recording.snapshot_steps[before - 1] if before else None

    def _action(self, t: int) -> dict[str, Any]:
        columns, keys = self.recording.steps, self.recording.meta.get("keys")
        if keys is None:
            return {name: int(columns[name][t]) for name in ("buttons", "camera")}
        pressed = dict(zip(keys, columns["keys"][t].tolist(), strict=True))
        return {**pressed, "camera": columns["degrees"][t]}


def _player(meta: dict[str, Any]) -> str:
    policy = meta.get("policy")
    named = policy if isinstance(policy, dict) else {}
    return str(named.get("agent") or named.get("checkpoint") or named.get("name") or "")


class _Frames:
    """The frames of a recording by their number, decoded when they are asked for."""

    def __init__(self, recording: Recording, *, beside: bool) -> None:
        self._recording, self._is_beside = recording, beside
        self._decoded: Iterator[Frame] = iter(())
        self._last: tuple[int, Frame | None] = 0, None

    def at(self, t: int) -> Frame:
        """Return frame t, (height, width, 3) uint8 RGB.

        Raises:
            RecordingError: There is no such frame, or it cannot be decoded.
        """
        number, frame = self._last
        if frame is None or not 0 <= t - number <= FORWARD:
            self._decoded = self._recording.frames(start=t, beside=self._is_beside)
            number = t - 1
        for _ in range(t - number):
            frame = next(self._decoded)
        assert frame is not None
        self._last = t, frame
        return frame
