"""`start_rolloutmanager` and `start_trainer`, with which MineStudio's programs start training.

    start_rolloutmanager(policy_generator, env_generator, online_cfg)
    start_trainer(policy_generator, env_generator, online_cfg)

Their arguments are translated as by `rllib convert`, and trained as by `rllib train file`. While
the generators run, what they import from `minestudio` is replaced by stand-ins. Environments of
this package are built, asked for their options, and closed.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rllib_minestudio.cli.convert.environment import as_yaml, experiment_name, translate
from rllib_minestudio.cli.convert.stand_ins import Config, ConfigModule
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from rllib_minestudio.experiments.experiment_file import minestudio_config, packaged_example
from rllib_minestudio.foundation.console import stdout
from rllib_minestudio.foundation.options import Problems, broken_rule

if TYPE_CHECKING:
    from ray.tune import Result

RAY_RESULTS = Path("~/ray_results")
"""Folder of the results if `save_path` is None."""

CONFIG_FILE = "whole_config.py"
"""File in the run's folder with the text of the config, which MineStudio stores in checkpoints."""

_WITHOUT_A_FILE = Path("online.py")
"""Name for code that was typed into an interpreter or a notebook."""


def start_rolloutmanager(
    policy_generator: Callable[[], Any], env_generator: Callable[[], Any], online_cfg: Any
) -> None:
    """Check the arguments of MineStudio's manager of rollout workers.

    Nothing is started: `start_trainer` starts the env runners.

    Args:
        policy_generator: Returns the policy; called by `start_trainer`.
        env_generator: Returns the simulator; called by `start_trainer`.
        online_cfg: The options, a mapping or an OmegaConf config of one.

    Raises:
        InvalidOptionsError: An argument has the wrong type.
    """
    _checked(policy_generator, env_generator, online_cfg)
    stdout.print("start_rolloutmanager: start_trainer starts the env runners itself.")


def start_trainer(
    policy_generator: Callable[[], Any],
    env_generator: Callable[[], Any],
    online_cfg: Any,
    whole_config: str | None = None,
) -> Result:
    """Train for `train_config.num_iterations` iterations.

    The run's folder is below `train_config.save_path`, or `~/ray_results` if that is None. It
    contains the experiment file into which the arguments were translated. Ray is started for the
    run and shut down after it.

    Args:
        policy_generator: Returns the policy, MineStudio's or this package's.
        env_generator: Returns the simulator, MineStudio's or this package's.
        online_cfg: The options, a mapping or an OmegaConf config of one.
        whole_config: The config's text, to be kept with the run.

    Returns:
        Tune's result: metrics, checkpoint, and the folder.

    Raises:
        InvalidOptionsError: Something cannot be translated, or the translation is invalid; all
            problems are listed.
        MineStudioError: Training failed, or this process already runs Ray.
    """
    options = _checked(policy_generator, env_generator, online_cfg)
    if not isinstance(whole_config, str | None):
        rule = "must be the config's text, or None"
        raise InvalidOptionsError(broken_rule("whole_config", whole_config, rule))
    _refuse_second_ray()
    script = _file_of(env_generator) or _file_of(policy_generator)
    folder = script.parent if script else Path.cwd()
    source = script or _WITHOUT_A_FILE
    translation = translate(Config(policy_generator, env_generator, options, folder))
    require_complete(translation.left_out, "start_trainer", "`rllib convert` on the program")
    name = f"{experiment_name(source)}.yaml"
    kept = {name: as_yaml(translation, source)}
    if whole_config is not None:
        kept[CONFIG_FILE] = whole_config
    return _trained(name, kept, _results_folder(options))


def _trained(name: str, kept: Mapping[str, str], out: Path) -> Result:
    """Train the experiment in the file `name`, one of those to keep with the run."""
    from rllib_minestudio.experiments.resume_trials import results_on_disk
    from rllib_minestudio.experiments.train import TrainingRequest, train_experiments

    with written(name, kept) as file:
        (run,) = train_experiments(TrainingRequest(file=file, out=out, kept=kept))
    if run.status:
        raise MineStudioError(f"Training failed; the results so far are in {str(run.folder)!r}.")
    (result,) = results_on_disk(run.plan, run.folder)
    return result


def _refuse_second_ray() -> None:
    """Refuse early what would be refused when the run starts.

    Raises:
        MineStudioError: This process already runs Ray.
    """
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        raise MineStudioError(
            "This process runs Ray already, and start_trainer starts its own: leave out "
            "ray.init(), or call ray.shutdown() first."
        )


def _checked(policy_generator: Any, env_generator: Any, online_cfg: Any) -> dict[str, Any]:
    """Return the options as a dict.

    Raises:
        InvalidOptionsError: An argument has the wrong type; all problems are listed.
    """
    problems = Problems()
    for name, generator in (
        ("policy_generator", policy_generator),
        ("env_generator", env_generator),
    ):
        if not callable(generator):
            problems.add(name, generator, "must be a function without arguments")
    options = online_cfg
    if OmegaConf.is_config(online_cfg):
        try:
            options = OmegaConf.to_container(online_cfg, resolve=True)
        except OmegaConfBaseException as error:
            problems.messages.append(f"online_cfg: {str(error).splitlines()[0]}.")
            options = {}
    if not isinstance(options, Mapping):
        problems.add("online_cfg", online_cfg, "must be a mapping, or OmegaConf.create of one")
    problems.raise_if_any()
    return dict(options)


def _results_folder(options: Mapping[str, Any]) -> Path:
    train_config = options.get("train_config")
    place = train_config.get("save_path") if isinstance(train_config, Mapping) else None
    return Path(place or RAY_RESULTS).expanduser()


def _file_of(generator: Callable[[], Any]) -> Path | None:
    """Return the source file of a generator; None if there is none."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(generator))
    except TypeError:  # a callable object
        return None
    return Path(file).resolve() if file is not None and Path(file).is_file() else None


# ------------------------------------------------------- training directly from a translated config
# The translation must be complete, and is kept with the run.


@contextmanager
def experiment_file(given: Path) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """Find the file for `rllib train file`, converting one of MineStudio's configs if it is named.

    Args:
        given: A path, or a bare name. Files have precedence over the package's examples, and these
            over MineStudio's configs.

    Yields:
        The file, and the texts to keep in the run's folder because they are stored nowhere else.

    Raises:
        ExperimentFileError: The config raises an error.
        InvalidOptionsError: The config cannot be translated completely.
    """
    is_bare = given.name == str(given) and not given.exists()
    config = minestudio_config(given.name) if is_bare and not packaged_example(given) else None
    if config is None:
        yield given, {}
        return
    stdout.print(
        f"{given} is MineStudio's config {config}, Python that is executed. It is converted, and "
        f"the run's folder keeps {config.stem}.yaml."
    )
    translation = translate(ConfigModule(config))
    require_complete(translation.left_out, str(given), f"`rllib convert {config}`")
    kept = {f"{config.stem}.yaml": as_yaml(translation, config), config.name: config.read_text()}
    with written(f"{config.stem}.yaml", kept) as file:
        yield file, kept


def require_complete(left_out: list[str], name: str, translator: str) -> None:
    """Refuse to train an incomplete translation.

    Args:
        left_out: What could not be translated.
        name: Name of what was translated.
        translator: What writes the translated part to a file, for the message.

    Raises:
        InvalidOptionsError: The translation is incomplete.
    """
    if left_out:
        raise InvalidOptionsError(
            [
                *(f"{name}: not translated: {sentence}" for sentence in left_out),
                f"{name}: nothing was trained. {translator} writes what can be translated to "
                "a file; complete it, and train that file.",
            ]
        )


@contextmanager
def written(name: str, texts: Mapping[str, str]) -> Iterator[Path]:
    """Write one of several texts to a temporary file of its name."""
    with tempfile.TemporaryDirectory(prefix="rllib-minestudio-") as folder:
        file = Path(folder) / name
        file.write_text(texts[name])
        yield file
