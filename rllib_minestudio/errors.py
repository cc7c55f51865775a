"""Every exception this package raises on purpose, one sentence each.

Catch `MineStudioError` to catch them all. The message is written for the person who
caused it: the field, the value received, the rule, and the way out.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class MineStudioError(Exception):
    """Base class of all errors raised by rllib_minestudio."""


class InvalidOptionsError(MineStudioError, ValueError):
    """One or more options of an environment, model, algorithm or experiment are wrong.

    Attributes:
        problems: One complete sentence per problem, in the order they were found.
    """

    def __init__(self, problems: str | Sequence[str]) -> None:
        """Collect `problems`, one message or several, into one exception."""
        self.problems: list[str] = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type["InvalidOptionsError"], tuple[list[str]]]:
        """Pickle by problems, so that the error crosses Ray's process borders whole."""
        return type(self), (self.problems,)


class InvalidActionError(MineStudioError, ValueError):
    """An action does not belong to the action space of the environment."""


USER_ERRORS = (InvalidActionError, InvalidOptionsError)
"""Mistakes of whoever wrote the actions or options: trying again would only repeat them."""


class InvalidBatchError(MineStudioError, ValueError):
    """A batch for the RLModule lacks a part, or a part has the wrong shape or type."""


class CheckpointMismatchError(MineStudioError):
    """A checkpoint or weights file does not fit the model it is loaded into."""


class CheckpointError(MineStudioError):
    """A checkpoint is incomplete, damaged, or was written by something else."""


class CheckpointFormatError(CheckpointError):
    """A checkpoint is of a format that another version of this package reads."""


class EngineError(MineStudioError, RuntimeError):
    """The game engine crashed, hung, or is not available."""


class ExperimentFileError(MineStudioError):
    """An experiment file is missing, unreadable, or has the wrong layout."""


def describe(error: BaseException) -> str:
    """Return an exception in one line: its class and message."""
    return f"{type(error).__name__}: {error}"


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the valid name closest to `name`, or "" if none is close.

    Args:
        name: What the user wrote.
        valid: All names that would have been right.
    """
    candidates = {option.lower(): option for option in valid}
    close = get_close_matches(str(name).lower(), candidates, n=1, cutoff=0.6)
    return f" Did you mean {candidates[close[0]]!r}?" if close else ""


class ReplayBufferError(MineStudioError, ValueError):
    """The replay buffer was given an impossible limit or asked for more than it holds."""


class NonFiniteLossError(MineStudioError):
    """The training loss was NaN or infinite too many times in a row."""


class DependencyError(MineStudioError, ImportError):
    """A package that this one needs is of a version that it does not work with."""


class RecordingError(MineStudioError):
    """A recording cannot be written, or cannot be read."""


class NonFiniteWeightsError(MineStudioError):
    """Weights or optimizer moments are NaN or infinite and must be neither saved nor published."""


class FragmentsLostError(MineStudioError, RuntimeError):
    """All fragments of a batch were lost together with the machines that held them."""


class EnvRunnersLostError(MineStudioError, RuntimeError):
    """No env runner delivered experience in time."""


class EnvPoolError(MineStudioError, RuntimeError):
    """An environment failed so often that trying again is pointless."""


class PartLostError(MineStudioError, RuntimeError):
    """A part of the training system died or hung too often to go on."""


class PolicyContractError(MineStudioError):
    """A policy does not do what env runners and learners rely on."""


class AgentError(MineStudioError, RuntimeError):
    """An agent of somebody's own raised, did not answer in time, or returned no action."""
