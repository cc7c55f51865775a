"""Resolving a path or name to a checkpoint, and listing the checkpoints of a trial.

A path is a checkpoint's own or that of a folder with checkpoints. A name is `latest` or `best`, a
prior of this package (a folder of `priors`), or a Hugging Face id, whose files are downloaded when
it is opened.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rllib_minestudio.checkpoints.record import (
    RECORD_FILE,
    CheckpointRecord,
    check_digests,
    read_record,
)
from rllib_minestudio.errors import (
    CheckpointError,
    CheckpointFormatError,
    CheckpointMismatchError,
    did_you_mean,
)
from rllib_minestudio.foundation.files import NOT_A_URL, is_url
from rllib_minestudio.foundation.options import shown

LATEST = "latest"
POLICY_AVERAGE = "policy_average"
"""Folder of the averaged weights in a checkpoint, if training has computed them."""

SHIPPED = "package:"
"""Prefix of the names of priors that come with this package, to tell them from paths."""

PRIORS = Path(__file__).parents[1] / "priors"

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""The id of a model on Hugging Face, `owner/name`."""

CONFIG_FILE, TENSORS = "config.json", "model.safetensors"
HUB_FILES = [CONFIG_FILE, TENSORS]
"""The files that are downloaded from a model."""

FILE_SUFFIXES = {".pt", ".pth", ".bin", ".ckpt", ".weights", ".model", ".safetensors", ".pkl"}
"""Suffixes of files, never of Hugging Face ids: a mistyped path must not be looked up online."""

RESULTS = Path("results")
"""Default folder of `rllib train`'s results, where `latest` and `best` alone are looked up."""

HELP = """\
A CHECKPOINT is one of
  results/cow/RUN/TRIAL/checkpoint_000010   a checkpoint's own folder
  results/cow/RUN/TRIAL, results/cow/RUN, results/cow
                              the best checkpoint below the folder; the newest where none has a
                              return, as with clones
  results/cow/best            of all checkpoints below the folder, the one with the highest mean
                              return of the episodes that ended last before it was saved
  results/cow/latest          the one that was saved last; `latest` alone is results/latest
  .../policy_average          after any of these: its averaged weights, where ema_decay kept them
  package:hunter_nano         a prior that comes with this package
"""
"""Help text of every command that takes a checkpoint."""

EXPECTED = (
    "Give a checkpoint, the folder of a trial, a run or an experiment (its best checkpoint), such "
    "a folder with /best or /latest appended, package:hunter_nano, a folder with config.json and "
    "model.safetensors (Hugging Face), model.ckpt (MineStudio), one .model and one .weights "
    "(OpenAI), or a file of tensors"
)
"""The way out in messages, without a full stop."""

EXPERIMENT_SUFFIXES = (".yaml", ".yml", ".py")
"""Suffixes of experiment files, which hold no weights."""

_LEVELS = 3
"""Levels from a folder of results down to a trial: experiment, run, trial."""

_NAMES_SHOWN = 8


def locate(source: str | Path) -> Path:
    """Return the path of the checkpoint that a path or name refers to.

    A source that has none of the forms in `HELP` is returned as it is, unchecked.

    Args:
        source: What the user wrote.

    Raises:
        CheckpointMismatchError: A name or folder leads to no checkpoint, or to those of several
            experiments; or the source is an experiment file.
    """
    if is_shipped(source):
        return shipped_folder(str(source))
    if is_url(str(source)):
        raise CheckpointMismatchError(f"{shown(str(source))} {NOT_A_URL}. {EXPECTED}.")
    path = Path(source)
    if path.suffix in EXPERIMENT_SUFFIXES and path.is_file():
        raise CheckpointMismatchError(
            f"{str(source)!r} is an experiment file, not a checkpoint. {EXPECTED}."
        )
    if path.name == POLICY_AVERAGE and not path.exists():
        return _average_of(path)
    if path.name == BEST and path.is_symlink() and path.exists():
        return _behind(path)
    if path.name in (BEST, LATEST) and not path.exists():
        folder = RESULTS if path.parts == (path.name,) else path.parent
        trials = _trials_in(folder)
        if not trials:
            raise CheckpointMismatchError(
                f"{str(source)!r} names no checkpoint: {what_is_there(folder)} Append "
                f"/{path.name} to the folder of an experiment, a run or a trial, such as "
                f"results/cow/{path.name}."
            )
        return _newest(folder, trials) if path.name == LATEST else _best(folder, trials)
    if not path.is_dir() or (path / RECORD_FILE).is_file() or not (trials := _trials_in(path)):
        return path
    has_returns = any(os.path.lexists(trial / BEST) for trial in trials)
    return _best(path, trials) if has_returns else _newest(path, trials)


def _average_of(path: Path) -> Path:
    """Return the averaged weights of the checkpoint to whose name `POLICY_AVERAGE` is appended.

    Raises:
        CheckpointMismatchError: It has none.
    """
    checkpoint = locate(path.parent)
    if not (checkpoint / POLICY_AVERAGE).is_dir():
        raise CheckpointMismatchError(
            f"{str(checkpoint)!r} has no averaged weights: they are kept by training with "
            f"ema_decay, such as --set ema_decay=0.999. {what_is_there(checkpoint)}"
        )
    return checkpoint / POLICY_AVERAGE


def pinned(source: Any) -> Any:
    """Return a source that refers to the same checkpoint even if training goes on.

    Args:
        source: A path or name of weights; anything else is returned as it is.

    Returns:
        The path of the checkpoint that the source refers to now.
    """
    if not isinstance(source, str | Path) or is_shipped(source):
        return source
    try:
        path = locate(source)
    except (CheckpointMismatchError, CheckpointFormatError, OSError):
        return source  # the code that opens it reports what is wrong
    return source if path == Path(source) else str(path)


def what_is_there(path: Path) -> str:
    """Describe, in one or two sentences, what a folder holds, or which part of a path exists."""
    if path.is_dir():
        return f"{str(path)!r} holds {_listed(path)}."
    if path.exists():
        return f"{str(path)!r} is a file."
    folder = next((parent for parent in path.parents if parent.is_dir()), Path())
    missing = path.relative_to(folder).parts[0]
    hint = did_you_mean(missing, [*_names_in(folder), BEST, LATEST])
    return f"{str(folder)!r} has no {missing!r}, and holds {_listed(folder)}.{hint}"


def is_shipped(source: object) -> bool:
    """Return whether `source` names weights that come with this package."""
    return isinstance(source, str | Path) and str(source).startswith(SHIPPED)


def shipped_names() -> list[str]:
    """Return the names of the priors that come with this package, without the prefix."""
    return sorted(path.parent.name for path in PRIORS.glob(f"*/{TENSORS}"))


def shipped_folder(source: str) -> Path:
    """Return the folder of the weights named `package:NAME`.

    Raises:
        CheckpointMismatchError: There are no weights of that name.
    """
    name = source.removeprefix(SHIPPED)
    names = shipped_names()
    if name not in names:
        raise CheckpointMismatchError(
            f"weights {shown(source)} do not come with this package; it has "
            f"{', '.join(SHIPPED + known for known in names) or 'none'}.{did_you_mean(name, names)}"
        )
    return PRIORS / name


def is_hub_id(name: str) -> bool:
    """Return whether `name` can only be an id: no such path exists, nor its parent folder."""
    if not HUB_ID.fullmatch(name) or Path(name).suffix in FILE_SUFFIXES:
        return False
    return not Path(name).exists() and not Path(name).parent.exists()


def local_copy(hub_id: str) -> Path:
    """Return the folder of a model, downloading files that are not in the local cache.

    Args:
        hub_id: An id such as `CraftJarvis/MineStudio_VPT.rl_for_shoot_animals_2x`.

    Raises:
        CheckpointMismatchError: huggingface_hub is not installed, the machine is offline and the
            model not in the cache, or there is no such model.
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise CheckpointMismatchError(
            f"weights {hub_id!r} look like a Hugging Face id, for which the package "
            f"huggingface_hub is needed: pip install huggingface_hub. If a path is meant, it "
            f"does not exist."
        ) from error
    try:
        folder = Path(snapshot_download(hub_id, allow_patterns=HUB_FILES))
    # Exceptions come from several libraries, and all mean the same here.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointMismatchError(
            f"weights {hub_id!r} are not a path on this machine, and could not be fetched as a "
            f"Hugging Face id ({type(error).__name__}: {reason}). Check the spelling and the "
            f"network connection, or fetch the files {' and '.join(HUB_FILES)} elsewhere and "
            f"give their folder as weights."
        ) from error
    missing = [name for name in HUB_FILES if not (folder / name).is_file()]
    if missing:
        raise CheckpointMismatchError(
            f"Hugging Face model {hub_id!r} has no {' and no '.join(missing)}: it is not one of "
            f"MineStudio's VPT models."
        )
    return folder


def _trials_in(folder: Path) -> list[Path]:
    """List the folders of trials, whether or not their checkpoints are complete."""
    return list(dict.fromkeys(map(trial_of, checkpoint_folders(folder, _LEVELS))))


def _best(folder: Path, trials: Sequence[Path]) -> Path:
    """Return the checkpoint with the highest mean return.

    Raises:
        CheckpointMismatchError: None has a return, or the trials belong to several experiments.
    """
    paths = [trial.relative_to(folder).parts for trial in trials]
    experiments = sorted({parts[0] for parts in paths if len(parts) == _LEVELS})
    if len(experiments) > 1:
        raise CheckpointMismatchError(
            f"{str(folder)!r} holds several experiments, whose returns cannot be compared: "
            f"{', '.join(experiments)}. Name one of them, such as {folder / experiments[0]}, or "
            f"give {folder / LATEST}."
        )
    found = [(best.mean_return, trial) for trial in trials if (best := best_checkpoint(trial))]
    returns = [(mean, trial) for mean, trial in found if mean is not None]
    if not returns:
        raise CheckpointMismatchError(
            f"{str(folder / BEST)!r} names no checkpoint: no complete one in {str(folder)!r} has "
            "a mean return, because no episode had ended when it was saved, or because it is a "
            f"clone's, which plays none. Give {folder / LATEST} instead."
        )
    _, trial = max(returns, key=lambda entry: entry[0])
    return _behind(trial / BEST)


def _newest(folder: Path, trials: Sequence[Path]) -> Path:
    """Return the complete checkpoint that was saved last.

    Raises:
        CheckpointMismatchError: No checkpoint is complete.
    """
    found = [newest for trial in trials if (newest := newest_checkpoint(trial))]
    if not found:
        raise CheckpointMismatchError(
            f"No checkpoint below {str(folder)!r} is complete: `rllib checkpoint info {folder}` "
            "says what each of them lacks."
        )
    return max(found, key=_time_of).folder


def _time_of(checkpoint: SavedCheckpoint) -> tuple[str, int]:
    return checkpoint.record.saved_at, checkpoint.record.iteration


def _behind(link: Path) -> Path:
    """Return the target of a link, because training may change the link at any time."""
    return link.parent / os.readlink(link) if link.is_symlink() else link


def _names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))


def _listed(folder: Path) -> str:
    names = _names_in(folder)
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "") or "nothing"


# -------------------------------------------------------------------- a trial's checkpoints on disk
#
#     <trial>/checkpoint_000011/       the newest few, numbered by Tune, which deletes older ones
#     <trial>/kept/iteration_000200/   every keep_interval-th, and the best; never deleted
#     <trial>/best                     link to the one with the highest mean return

logger = logging.getLogger(__name__)

PREFIX = "checkpoint_"
KEPT = "kept"
BEST = "best"


class SavedCheckpoint(NamedTuple):
    """A complete checkpoint: its folder and its record."""

    folder: Path
    record: CheckpointRecord

    @property
    def mean_return(self) -> float | None:
        """Mean return of the episodes that ended last before it was saved."""
        return self.record.mean_return


def numbered_folders(trial_folder: Path) -> list[Path]:
    """List the folders that Tune numbers, complete or not, oldest first."""
    folders = [path for path in trial_folder.glob(f"{PREFIX}*") if path.is_dir()]
    return sorted(path for path in folders if path.name.removeprefix(PREFIX).isdigit())


def checkpoint_folders(folder: Path, levels: int | None = None) -> Iterator[Path]:
    """Yield the folders of all checkpoints below a folder, complete or not, by trial, oldest first.

    Args:
        folder: Folder of a trial, or one that contains trials.
        levels: Number of levels below it to search for trials; None for all.
    """
    if not folder.is_dir():
        return
    yield from folders_of_trial(folder)
    if levels == 0:
        return
    for child in sorted(folder.iterdir()):
        other = not child.is_dir() or child.is_symlink()
        if not other and not child.name.startswith((".", KEPT, PREFIX)):
            yield from checkpoint_folders(child, None if levels is None else levels - 1)


def folders_of_trial(trial_folder: Path) -> list[Path]:
    """List a trial's checkpoints, complete or not: first those in `KEPT`, each oldest first."""
    return [*sorted((trial_folder / KEPT).glob("iteration_*")), *numbered_folders(trial_folder)]


def trial_of(folder: Path) -> Path:
    """Return the folder of the trial to which a checkpoint, in `KEPT` or not, belongs."""
    return folder.parent.parent if folder.parent.name == KEPT else folder.parent


def number_of(folder: Path) -> int:
    """Return the number in the name of one of Tune's checkpoint folders."""
    return int(folder.name.removeprefix(PREFIX))


def read_checkpoint(folder: Path) -> SavedCheckpoint | None:
    """Return a checkpoint if it is complete, else None.

    Raises:
        CheckpointFormatError: It has another format, which does not mean that it is incomplete.
    """
    try:
        return SavedCheckpoint(folder, read_record(folder))
    except CheckpointFormatError:
        raise
    except CheckpointError:
        return None


def complete_checkpoints(trial_folder: Path) -> list[SavedCheckpoint]:
    """List a trial's complete checkpoints that Tune numbered, oldest first."""
    found = [read_checkpoint(folder) for folder in numbered_folders(trial_folder)]
    return [checkpoint for checkpoint in found if checkpoint is not None]


def loadable_checkpoints(trial_folder: Path) -> list[SavedCheckpoint]:
    """List the complete checkpoints up to the newest one whose files match their digests."""
    found = complete_checkpoints(trial_folder)
    while found:
        try:
            check_digests(found[-1].folder)
            break
        except CheckpointError as error:
            logger.warning("%s", error)
            found.pop()
    return found


def best_checkpoint(trial_folder: Path) -> SavedCheckpoint | None:
    """Return the checkpoint with the highest mean return so far; None if there is none."""
    link = trial_folder / BEST
    return read_checkpoint(link.resolve()) if link.exists() else None


def newest_checkpoint(trial_folder: Path) -> SavedCheckpoint | None:
    """Return the complete checkpoint of the highest iteration; None if there is none."""
    newest_first = reversed(folders_of_trial(trial_folder))  # those in `KEPT` are older
    return next((found for folder in newest_first if (found := read_checkpoint(folder))), None)
