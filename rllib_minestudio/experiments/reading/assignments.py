"""`key=value`, as `--set` and `--stop` take it, and the value at a path."""

from collections.abc import Sequence
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.small_files import SmallFileError, check_interpolations, check_yaml


def parse_assignments(assignments: Sequence[str], option: str) -> dict[str, Any]:
    """Turn `key=value` strings into a flat mapping; values are YAML, `1e-5` is a number.

    Args:
        assignments: What the user wrote after each `option`.
        option: Name of the command-line option, for the message.

    Raises:
        InvalidOptionsError: One of them has no `=`, or its value is not YAML.
    """
    check_assignments(assignments, option)
    parsed: dict[str, Any] = {}
    for assignment in assignments:
        key, _, text = assignment.partition("=")
        try:
            parsed[key] = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={text}"]))["value"]  # type: ignore[call-overload,index]
        except (YAMLError, OmegaConfBaseException, ValueError, RecursionError) as error:
            raise InvalidOptionsError(f"{option} {assignment}: the value is not YAML.") from error
    return parsed


def check_assignments(assignments: Sequence[str], option: str) -> None:
    """Refuse what is no `key=value`, and values that would be far larger than their text.

    Args:
        assignments: What the user wrote after each `option`.
        option: Name of the command-line option, for the message.

    Raises:
        InvalidOptionsError: One of them has no `=`, or its value is not YAML, or too large.
    """
    broken = [text for text in assignments if not text.partition("=")[0] or "=" not in text]
    if broken:
        raise InvalidOptionsError(
            [f"{option} {text}: must be written key=value, such as lr=1e-5." for text in broken]
        )
    for assignment in assignments:
        _check_value(assignment, option)


def _check_value(assignment: str, option: str) -> None:
    """Refuse a value that would be far larger than its text.

    Raises:
        InvalidOptionsError: It is one, or no YAML.
    """
    try:
        check_yaml(text := assignment.partition("=")[2])
        check_interpolations(text)
    except (YAMLError, SmallFileError) as error:
        raise InvalidOptionsError(
            f"{option} {assignment[:200]}: the value is not YAML: {first_line(error)}."
        ) from error


def first_line(error: Exception) -> str:
    """Return what an error says first, to be put into a sentence of ours."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def value_at(config: Any, path: Sequence[Any]) -> Any:
    """Return the value that a trial's config has at a searched path."""
    for key in path:
        config = config[key]
    return config
