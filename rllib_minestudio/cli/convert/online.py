"""`start_rolloutmanager` and `start_trainer`, with which a program of MineStudio's begins training.

    start_rolloutmanager(policy_generator, env_generator, online_cfg)
    start_trainer(policy_generator, env_generator, online_cfg)

What they are given is translated as `rllib convert` translates a config module, and trained as
`rllib train file` trains what that writes. What the generators import from `minestudio` is replaced
while they run; what they take from this package is built, asked for its options, and closed.
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

from rllib_minestudio.cli.convert.stand_ins import Config, ConfigModule
from rllib_minestudio.cli.convert.writer import as_yaml, experiment_name, translate
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from rllib_minestudio.experiments.file import minestudio_config, packaged_example
from rllib_minestudio.foundation.console import stdout
from rllib_minestudio.foundation.options import Problems, broken_rule

if TYPE_CHECKING:
    from ray.tune import Result

RAY_RESULTS = Path("~/ray_results")
"""Where a run goes whose `save_path` is None."""

CONFIG_FILE = "whole_config.py"
"""Where a run's folder holds the text of the config, which MineStudio puts into checkpoints."""

_WITHOUT_A_FILE = Path("online.py")
"""Names what was typed into an interpreter or a notebook."""


def start_rolloutmanager(
    policy_generator: Callable[[], Any], env_generator: Callable[[], Any], online_cfg: Any
) -> None:
    """Check what MineStudio's manager of rollout workers would be started with.

    Nothing is started: env runners belong to the run here, and `start_trainer` starts them.

    Args:
        policy_generator: Returns the policy; called by `start_trainer`.
        env_generator: Returns the simulator; called by `start_trainer`.
        online_cfg: The options, a mapping or OmegaConf's of one.

    Raises:
        InvalidOptionsError: One of them is of another kind.
    """
    _checked(policy_generator, env_generator, online_cfg)
    stdout.print("start_rolloutmanager: start_trainer starts the env runners itself.")


def start_trainer(
    policy_generator: Callable[[], Any],
    env_generator: Callable[[], Any],
    online_cfg: Any,
    whole_config: str | None = None,
) -> Result:
    """Train until `train_config.num_iterations` are done.

    The run's folder is below `train_config.save_path`, or below `~/ray_results` where that is
    None. It holds the experiment file that everything was translated into. Ray is started for the
    run and shut down after it.

    Args:
        policy_generator: Returns the policy, MineStudio's or this package's.
        env_generator: Returns the simulator, MineStudio's or this package's.
        online_cfg: The options, a mapping or OmegaConf's of one.
        whole_config: The config's text, to be kept with the run.

    Returns:
        Tune's result: metrics, checkpoint, and the folder.

    Raises:
        InvalidOptionsError: Something cannot be translated, or what was translated is not in
            order; lists all problems.
        MineStudioError: The training failed, or this process runs Ray already.
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
    """Train what is in the file `name` of those that are kept."""
    from rllib_minestudio.experiments.resumed_run import results_on_disk
    from rllib_minestudio.experiments.train import TrainingRequest, train_experiments

    with written(name, kept) as file:
        (run,) = train_experiments(TrainingRequest(file=file, out=out, kept=kept))
    if run.status:
        raise MineStudioError(f"The training failed; {str(run.folder)!r} holds what there is.")
    (result,) = results_on_disk(run.plan, run.folder)
    return result


def _refuse_second_ray() -> None:
    """Say at once what would be said when the run is about to begin.

    Raises:
        MineStudioError: This process runs Ray.
    """
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        raise MineStudioError(
            "This process runs Ray already, and start_trainer starts one of its own: leave out "
            "ray.init(), or call ray.shutdown() before."
        )


def _checked(policy_generator: Any, env_generator: Any, online_cfg: Any) -> dict[str, Any]:
    """Return the options as a mapping of Python's own.

    Raises:
        InvalidOptionsError: An argument is of a kind that it cannot have; lists all problems.
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
    """Return the file that a generator is written in; None if it is in none."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(generator))
    except TypeError:  # an object that is called
        return None
    return Path(file).resolve() if file is not None and Path(file).is_file() else None


# ------------------------------------------------------- a translation that is trained from at once
# Kept with the run, and complete or refused.


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
