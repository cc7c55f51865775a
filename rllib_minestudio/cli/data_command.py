"""`rllib data`: what a folder of recordings holds, what is wrong with it, how it looks."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from rllib_minestudio.cli.flags import add_flags
from rllib_minestudio.errors import InvalidOptionsError, RecordingError, did_you_mean
from rllib_minestudio.foundation.console import counted, phase, print_next, stderr, stdout
from rllib_minestudio.foundation.options import MANY, Flag, option

IS_DAMAGED = 1
"""Exit status of `check` if anything cannot be read."""

DESCRIPTION = """\
Look at recordings before you clone them: this package's, contractor recordings as OpenAI published
them (NAME.mp4 with NAME.jsonl), and MineStudio's datasets (docs/data.md).

`info` counts episodes, hours and frames, and reads the actions of some episodes: which keys they
press, and how well a policy does that knows the frequencies of actions, and sees nothing.
`check` reads every action, and with --frames every frame, and names each file that cannot be read.
`show` makes a film of an episode with its keys below, as the policy would see it.
"""

EXAMPLES = """\
examples:
  rllib data info demos/people/9.0
  rllib data check demos/people/9.0 --frames
  rllib data show demos/people/9.0 NAME --start 1200 --size 128
"""

_FOLDER = option(MISSING, "A folder of recordings.", Flag("FOLDER", is_positional=True))


@dataclass(frozen=True, kw_only=True)
class DataInfoRequest:
    """Options of `rllib data info`."""

    folder: Path = _FOLDER
    sample: int = option(
        50, "The actions of this many episodes are read.", Flag("N"), least=1, most=MANY
    )


@dataclass(frozen=True, kw_only=True)
class DataCheckRequest:
    """Options of `rllib data check`."""

    folder: Path = _FOLDER
    frames: bool = option(False, "Decode every frame, too; by default only the first and the last.")


@dataclass(frozen=True, kw_only=True)
class DataShowRequest:
    """Options of `rllib data show`."""

    folder: Path = _FOLDER
    episode: str = option(
        MISSING, "Name of an episode, or its end.", Flag("EPISODE", is_positional=True)
    )
    start: int = option(0, "First step.", Flag("STEP"), most=MANY)
    steps: int = option(200, "Number of steps.", least=1, most=MANY)
    size: int | None = option(
        None,
        "Side of the square to which frames are scaled, as for a policy. Default: as recorded.",
        Flag("PIXELS"),
        least=16,
        most=4096,
    )
    out: Path | None = option(None, "The film. Default: EPISODE.mp4.", Flag("FILE"))


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the commands of `rllib data`."""
    commands = parser.add_subparsers(dest="data_command", required=True, metavar="COMMAND")
    offered: Any = (
        ("info", "count episodes, hours, frames and keys", DataInfoRequest, info),
        ("check", "name each file that cannot be read, and why", DataCheckRequest, check),
        ("show", "make a film of an episode with its keys", DataShowRequest, show),
    )
    for name, line, request, run in offered:
        add_flags(commands.add_parser(name, help=line), request, run)


def info(request: DataInfoRequest) -> int:
    """Run `rllib data info` and return the exit status.

    Raises:
        RecordingError: There is no such folder, or nothing in it.
    """
    from rllib_minestudio.recordings.episodes import contents, open_episode, survey

    with phase("looking for recordings"):
        found = survey([request.folder])
    if not found.lengths:
        for name, reason in found.broken.items():
            stderr.print(f"{name}: {reason}", markup=False)
        raise RecordingError(f"{contents(request.folder)}.")
    stdout.print(f"{request.folder}: {found}", markup=False)
    for name, steps in found.formats.most_common():
        stdout.print(f"  {name:20} {steps:>12,} frames")
    step = max(1, len(found.lengths) // request.sample)
    chosen = list(found.lengths)[::step][: request.sample]
    tokens: Counter[tuple[int, int]] = Counter()
    for episode in map(open_episode, chosen):
        tokens.update(_tokens_of(episode))
    if tokens:
        stdout.print(f"\nin {counted(len(chosen), 'episode')} of these:")
        for line in _of_actions(tokens):
            stdout.print(f"  {line}")
    return 0


def _tokens_of(episode: Any) -> Iterator[tuple[int, int]]:
    from rllib_minestudio.demonstrations.windows import action_tokens

    buttons, camera = action_tokens(episode)
    return zip(buttons.tolist(), camera.tolist(), strict=True)


def _of_actions(tokens: Counter[tuple[int, int]]) -> Iterator[str]:
    """Yield lines about actions, and how often there are which."""
    import numpy as np

    from rllib_minestudio.env.actions import KEYS, ActionMapper

    mapper, total = ActionMapper(), sum(tokens.values())
    null = sum(n for (b, c), n in tokens.items() if mapper.is_null(np.array(b), np.array(c)))
    turning = sum(n for (_, c), n in tokens.items() if c != mapper.null_camera_token)
    keys: Counter[str] = Counter()
    for (buttons, camera), count in tokens.items():
        pressed = mapper.to_env(buttons, camera)
        keys.update({key: count for key in KEYS if pressed[key]})
    yield f"null actions {null / total:.1%}, camera turning {turning / total:.1%}"
    yield "pressed: " + ", ".join(f"{key} {n / total:.1%}" for key, n in keys.most_common())
    losses = []
    for head in (0, 1):
        counts: Counter[int] = Counter()
        for pair, count in tokens.items():
            counts[pair[head]] += count
        shares = np.array(list(counts.values())) / total
        losses.append(float(-(shares * np.log(shares)).sum()))
    yield (
        f"loss of a policy that sees nothing: {sum(losses):.2f} nats per step (buttons "
        f"{losses[0]:.2f}, camera {losses[1]:.2f}); of one that knows nothing: 13.86"
    )


def check(request: DataCheckRequest) -> int:
    """Run `rllib data check` and return the exit status.

    Raises:
        RecordingError: There is no such folder.
    """
    from rllib_minestudio.recordings.episodes import open_episode, survey

    found = survey([request.folder])
    for name, reason in found.broken.items():
        stdout.print(f"{name}: {reason}", markup=False)
    damaged, noted = len(found.broken), 0
    with phase(f"checking {counted(len(found.lengths), 'episode')}") as tell:
        for number, path in enumerate(found.lengths):
            tell(f"{number} of {len(found.lengths)}")
            try:
                episode = open_episode(path)
                notes = _notes_on(episode, request.frames)
            except RecordingError as error:
                stdout.print(f"{path}: {error}", markup=False)
                damaged += 1
                continue
            for note in notes:
                stdout.print(f"{path}: {note}", markup=False)
            noted += bool(notes)
    stdout.print(
        f"{counted(len(found.lengths) + len(found.broken), 'recording')}: {damaged} cannot be "
        f"read, {noted} can be read in part or deserve a look"
    )
    return IS_DAMAGED if damaged else 0


def _notes_on(episode: Any, every_frame: bool) -> list[str]:
    """Read an episode, and return what deserves a look.

    Raises:
        RecordingError: It cannot be read.
    """
    from rllib_minestudio.demonstrations.windows import action_tokens
    from rllib_minestudio.recordings.contractor import ContractorRecording, turning_of

    steps = action_tokens(episode).shape[1]
    spans = [(0, steps)] if every_frame else [(0, min(1, steps)), (max(0, steps - 1), steps)]
    for start, stop in spans:
        for _ in episode.frames(None, stop, start):
            pass
    notes: list[str] = episode.problems()
    turning = turning_of(episode) if isinstance(episode, ContractorRecording) else None
    if turning and (turning.lag or abs(turning.share - 1) > 0.1 or turning.correlation < 0.9):
        notes.append(
            f"the view turns by {turning.share:.2f} of what the mouse says, "
            f"{turning.lag} ticks later than expected (correlation {turning.correlation:.2f})"
        )
    return notes


def show(request: DataShowRequest) -> int:
    """Run `rllib data show` and return the exit status.

    Raises:
        RecordingError: There is no such folder, or the episode cannot be read.
        InvalidOptionsError: There is no such episode, or it ends before the first step.
    """
    from rllib_minestudio.demonstrations.windows import action_tokens
    from rllib_minestudio.env.actions import ActionMapper
    from rllib_minestudio.recordings.episodes import find_episodes, open_episode
    from rllib_minestudio.recordings.video import FRAMES_PER_SECOND, VideoWriter, with_key_strip

    size = None if request.size is None else (request.size, request.size)
    names = {path: _name_of(path) for path in find_episodes(request.folder)}
    matching = [path for path, name in names.items() if name.endswith(request.episode)]
    if not matching:
        raise InvalidOptionsError(
            f"EPISODE {request.episode!r} is none of the {len(names)} in {str(request.folder)!r}."
            f"{did_you_mean(request.episode, list(names.values()))}"
        )
    episode = open_episode(matching[0])
    buttons, camera = action_tokens(episode)
    stop = min(request.start + request.steps, len(buttons))
    if request.start >= stop:
        raise InvalidOptionsError(
            f"--start is {request.start}, but the episode has {len(buttons)} steps."
        )
    out = request.out or Path(f"{_name_of(matching[0])}.mp4")
    mapper = ActionMapper()
    with (
        phase(f"drawing {counted(stop - request.start, 'frame')}"),
        VideoWriter(out, FRAMES_PER_SECOND, crf=18) as film,
    ):
        frames = episode.frames(size, stop, request.start)
        for step, frame in enumerate(frames, request.start):
            keys = mapper.to_env(int(buttons[step]), int(camera[step]))
            film.add(with_key_strip(frame, keys, {"step": step}))
    print_next({str(out): "frames with the tokens' keys, as a policy is taught them"})
    return 0


def _name_of(path: Path) -> str:
    return path.stem if path.suffix in (".jsonl", ".pkl") else path.name
