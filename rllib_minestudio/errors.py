"""All exceptions that this package raises on purpose; `MineStudioError` is their base class.

Messages are written for the person who caused the error: they name the field, the value received,
the rule, and the way out.
"""

import os
import sysconfig
import traceback
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

_NOT_THE_USERS = (
    f"{Path(__file__).parent}{os.sep}",
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    "<frozen",
)
"""How the file names of code begin that is no user's."""


class MineStudioError(Exception):
    """Base class of all errors raised by rllib_minestudio."""


class InvalidOptionsError(MineStudioError, ValueError):
    """One or more options of an environment, model, algorithm or experiment are wrong.

    Attributes:
        problems: One complete sentence per problem, in the order they were found.
    """

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: list[str] = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type["InvalidOptionsError"], tuple[list[str]]]:
        """Pickle the list of problems, so that the error passes between Ray's processes intact."""
        return type(self), (self.problems,)


class InvalidActionError(MineStudioError, ValueError):
    """An action is not in the action space of the environment."""


USER_ERRORS = (InvalidActionError, InvalidOptionsError)
"""Errors caused by the caller's actions or options; trying again would only repeat them."""


class InvalidBatchError(MineStudioError, ValueError):
    """A batch for the RLModule lacks a key, or a value has the wrong shape or type."""


class CheckpointMismatchError(MineStudioError):
    """A checkpoint or weights file does not fit the model it is loaded into."""


class CheckpointError(MineStudioError):
    """A checkpoint is incomplete, damaged, or was not written by this package."""


class CheckpointFormatError(CheckpointError):
    """A checkpoint has a format that only another version of this package reads."""


class EngineError(MineStudioError, RuntimeError):
    """The game engine crashed, hung, or is not available."""


class ExperimentFileError(MineStudioError):
    """An experiment file is missing, cannot be read, or has the wrong structure."""


def describe(error: BaseException) -> str:
    """Return an exception's class and message."""
    return f"{type(error).__name__}: {error}"


def describe_with_place(error: BaseException) -> str:
    """Return an exception's class, message, and the line of the user's code that led to it.

    That line is the innermost one outside of this package, the standard library and installed
    packages; without such a line, the innermost of all.
    """
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if not frame.filename.startswith(_NOT_THE_USERS)]
    if not users and (not frames or isinstance(error, MineStudioError)):
        return describe(error)  # whose message says what is wrong
    frame = (users or frames)[-1]
    line = f": {frame.line}" if frame.line else ""
    return f"{describe(error)} ({Path(frame.filename).name}, line {frame.lineno}{line})"


_LONGEST_NAME = 300
"""Limit on the characters of a mistyped name; comparing longer ones would take long."""


def did_you_mean(name: Any, valid: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the valid name closest to `name`, or "" if none is close.

    Args:
        name: What the user wrote; nothing is close to what is no text, or a long one.
        valid: All valid names.
    """
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        return ""
    candidates = {option.lower(): option for option in valid}
    close = get_close_matches(name.lower(), candidates, n=1, cutoff=0.6)
    return f" Did you mean {candidates[close[0]]!r}?" if close else ""


class ReplayBufferError(MineStudioError, ValueError):
    """The replay buffer got an impossible limit, or was asked for more than it holds."""


class NonFiniteLossError(MineStudioError):
    """The training loss was NaN or infinite too many times in a row."""


class DependencyError(MineStudioError, ImportError):
    """A required package is installed in a version that this package does not work with."""


class RecordingError(MineStudioError):
    """A recording cannot be written or read."""


class SnapshotError(MineStudioError, ValueError):
    """A snapshot of a game is damaged, or of another version."""


class WatchError(MineStudioError):
    """What `rllib watch` is to show is not there, or its page cannot be served."""


class FolderInUseError(MineStudioError):
    """Another process writes to a folder.

    Args:
        folder: The folder.
        holder: The process, in words.
    """

    def __init__(self, folder: object, holder: str) -> None:
        super().__init__(
            f"{str(folder)!r} is in use by {holder or 'another process'}: wait until that has "
            "ended, or choose another folder."
        )
        self._arguments = (folder, holder)

    def __reduce__(self) -> tuple[type["FolderInUseError"], tuple[object, str]]:
        return type(self), self._arguments


class NonFiniteWeightsError(MineStudioError):
    """Weights or optimizer moments are NaN or infinite and must be neither saved nor published."""


class FragmentsLostError(MineStudioError, RuntimeError):
    """All fragments of a batch were lost with the machines that held them."""


class EnvRunnersLostError(MineStudioError, RuntimeError):
    """No env runner delivered experience in time."""


class EnvPoolError(MineStudioError, RuntimeError):
    """An environment failed so often that trying again is pointless."""


class PartLostError(MineStudioError, RuntimeError):
    """A process of the training system died or hung too often to go on."""


class PolicyContractError(MineStudioError):
    """A policy does not behave as env runners and learners require."""


class AgentError(MineStudioError, RuntimeError):
    """A user's own agent raised an error, did not answer in time, or returned no action."""


class UntrustedError(MineStudioError):
    """A file from elsewhere names code or paths, which only one of a trusted writer may."""
