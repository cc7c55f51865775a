"""A summary as one HTML page that needs no other file and no network."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from rllib_minestudio.evaluation.compare import PairedComparison, paired_returns
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_summary import CONFIDENCE, Summary
from rllib_minestudio.evaluation.report import plots
from rllib_minestudio.evaluation.report.tables import (
    COLUMNS,
    comparison_rows,
    policy_name,
    task_rows,
)
from rllib_minestudio.evaluation.report.videos import VideoSources
from rllib_minestudio.recordings.layout import VIDEO_FILE
from rllib_minestudio.whole_file import write_whole

MAX_EMBEDDED_BYTES = 48 * 1024**2
"""Of all videos together; what is beyond is linked, relative to the page."""


def write_page(
    summary: Summary,
    file: Path,
    compared: tuple[Summary, PairedComparison] | None = None,
    max_embedded: int = MAX_EMBEDDED_BYTES,
) -> None:
    """Write the page; it appears as a whole.

    Args:
        summary: What it shows.
        file: Where to; its folder is created.
        compared: Another evaluation, and what a comparison with it came to.
        max_embedded: Bytes of video that become part of it, the first episodes' first.
    """
    template = files("rllib_minestudio.evaluation.report").joinpath("page.html").read_text()
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    text = environment.from_string(template).render(
        name=policy_name(summary),
        summary=summary,
        confidence=CONFIDENCE,
        columns=COLUMNS,
        rows=task_rows(summary),
        plots=_plots(summary, None if compared is None else compared[0]),
        mode="most probable actions" if summary.policy.get("deterministic") else "sampled actions",
        checkpoint=summary.policy.get("checkpoint"),
        comparison=None if compared is None else compared[1],
        compared_rows=[] if compared is None else comparison_rows(summary, compared[0]),
        tiles=_tiles(summary, file.parent, max_embedded),
        identity=json.dumps(
            {"policy": dict(summary.policy), "config": dict(summary.config)}, indent=2, default=str
        ),
    )
    write_whole(file, text)


def _plots(summary: Summary, old: Summary | None) -> list[str]:
    drawn = [plots.rates(summary)] if summary.has_success else []
    drawn += [plots.returns(summary), plots.lengths(summary)]
    return drawn if old is None else [*drawn, plots.differences(paired_returns(summary, old))]


def _tiles(summary: Summary, folder: Path, max_embedded: int) -> list[dict[str, Any]]:
    sources, tiles = VideoSources(folder, max_embedded), []
    for episode in summary.episodes:
        video = video_of(episode)
        tiles.append({"episode": episode, "video": video and sources.source(video)})
    return tiles


def video_of(episode: EvaluatedEpisode) -> Path | None:
    """The mp4 file of an episode's recording, in either format; None if there is none."""
    if episode.recording is None:
        return None
    path = Path(episode.recording)
    if path.suffix == ".pkl":  # MineStudio's format
        path = path.with_name(path.name.replace("info_", "video_")).with_suffix(".mp4")
    else:
        path = path / VIDEO_FILE
    return path if path.is_file() else None
