"""Decides which recordings are kept once it is known how their episodes ended."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions
from rllib_minestudio.recordings.minestudio import files_of


def keep_chosen(
    episodes: Iterable[EvaluatedEpisode], options: EvaluationOptions
) -> Iterator[EvaluatedEpisode]:
    """Remove the recordings that `options.only` does not ask for, as the episodes come.

    With `best_K`, an episode is yielded with a recording that a later and better one may cost it;
    at no time are there more than K and the one at hand. `still_recorded` tells in the end.
    """
    best: list[EvaluatedEpisode] = []
    for episode in episodes:
        if episode.recording is not None:
            if options.best is not None:
                best.append(episode)
                best.sort(key=lambda e: (-e.undiscounted_return, e.index))
                for beaten in best[options.best :]:
                    remove_recording(str(beaten.recording))
                del best[options.best :]
                kept = episode in best
            else:
                kept = options.only in ("all", episode.outcome)
                if not kept:
                    remove_recording(episode.recording)
            episode = episode if kept else replace(episode, recording=None)
        yield episode


def still_recorded(episode: EvaluatedEpisode) -> EvaluatedEpisode:
    """Return the episode without its recording if that has been removed."""
    if episode.recording is not None and not Path(episode.recording).exists():
        return replace(episode, recording=None)
    return episode


def remove_recording(path: str) -> None:
    """Remove a recording: its folder, or the files of MineStudio's format."""
    if Path(path).is_dir():
        shutil.rmtree(path)
        return
    for file in files_of(Path(path)):
        if file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink()
