"""A translation that is trained from at once: kept with the run, and complete or refused."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rllib_minestudio.console import stdout
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.experiments.reading.minestudio_configs import minestudio_config
from rllib_minestudio.experiments.reading.packaged_examples import packaged_example


@contextmanager
def experiment_file(given: Path) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """Find what `rllib train file` is to read, converting one of MineStudio's configs by name.

    Args:
        given: A path, or a bare name. Files go before the package's examples, and these before
            MineStudio's configs.

    Yields:
        The file, and what the run's folder is to keep because it lies nowhere else.

    Raises:
        ExperimentFileError: The config raises.
        InvalidOptionsError: Not all of it can be translated.
    """
    is_bare = given.name == str(given) and not given.exists()
    config = minestudio_config(given.name) if is_bare and not packaged_example(given) else None
    if config is None:
        yield given, {}
        return
    from rllib_minestudio.cli.convert.stand_ins import ConfigModule
    from rllib_minestudio.cli.convert.writer import as_yaml, translate

    stdout.print(
        f"{given} is MineStudio's config {config}, Python that is executed; it is converted, and "
        f"the run's folder keeps {config.stem}.yaml."
    )
    translation = translate(ConfigModule(config))
    require_complete(translation.left_out, str(given), f"`rllib convert {config}`")
    kept = {f"{config.stem}.yaml": as_yaml(translation, config), config.name: config.read_text()}
    with written(f"{config.stem}.yaml", kept) as file:
        yield file, kept


def require_complete(left_out: list[str], name: str, translator: str) -> None:
    """Refuse to train what was translated in part only.

    Args:
        left_out: What was not.
        name: What was translated.
        translator: What writes the rest into a file, for the message.

    Raises:
        InvalidOptionsError: Anything was left out.
    """
    if left_out:
        raise InvalidOptionsError(
            [
                *(f"{name}: not translated: {sentence}" for sentence in left_out),
                f"{name}: nothing was trained. {translator} writes down what can be translated; "
                "see to the rest there, and train that file.",
            ]
        )


@contextmanager
def written(name: str, texts: Mapping[str, str]) -> Iterator[Path]:
    """Put one of several texts into a file of its name while a `with` block runs."""
    with tempfile.TemporaryDirectory(prefix="rllib-minestudio-") as folder:
        file = Path(folder) / name
        file.write_text(texts[name])
        yield file
