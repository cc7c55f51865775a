"""Every command and every setting in the docs is one that the program takes.

Nothing is trained here: commands go through the real parser, settings through the reader of
experiment files and the checks before a run. `test_tutorials.py` runs whole pages, and
`test_python_snippets.py` what is Python.
"""

import copy
import io
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from rllib_minestudio.benchmark.task import BenchmarkTask
from rllib_minestudio.cli.flags import request_from
from rllib_minestudio.cli.main import build_parser
from rllib_minestudio.env import EpisodeRecorder, MineStudioEnv, RecorderOptions
from rllib_minestudio.env.callbacks import MinecraftCallback
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.experiments import trackers
from rllib_minestudio.experiments.experiment_file import EXPERIMENT_KEYS, load_experiments
from rllib_minestudio.experiments.plan import make_plan
from rllib_minestudio.models.rl_modules import ConvGRURLModule
from tests.docs.pages import ROOT, fenced
from tests.docs.snippets import WITH_CODE, commands, example, parts, snippets

OTHER_PROGRAMS = {
    *("python3", "python", "pip", "pytest", "sphinx-build", ".", "export", "cd"),
    *("ray", "conda", "apt-get"),
}
"""What commands of the docs begin with that are not ours. Those that run files of this project are
checked below; README's set-up is what `.ci/run` runs."""

NOT_HERE = (
    "are not a path on this machine, and could not be fetched as a Hugging Face id",
    "'results/stone_pickaxe_bc/latest' names no checkpoint",
    "weights 'foundation-model-1x.model' do not exist",
    "but there is no folder 'demos/",
    "There is no folder 'demonstrations/cow' with recordings",
    "engine='minecraft' cannot start on this machine",
)
"""What checks say of weights, recordings and a game that this machine lacks, if that is all."""

YAML = {
    f"{snippet}-{number}": yaml.safe_load(part)
    for snippet in snippets("yaml")
    for number, part in enumerate(parts(snippet))
}
TASKS = {where: settings for where, settings in YAML.items() if "time_limit" in settings}


def test_commands_stand_in_blocks_of_bash_and_all_are_known():
    for page in WITH_CODE:
        for language, text in fenced(page.read_text()):
            assert language in ("bash", "python", "yaml", "text", "diff", ""), (page.name, language)
            if language in ("text", "diff", ""):
                assert not re.search(r"^(rllib|python|pip|pytest) ", text, re.MULTILINE), page.name
    programs = {command.words[0] for command in commands()}
    assert programs - {"rllib"} <= OTHER_PROGRAMS


def wrong_settings(file, overrides=()):
    """What the checks before a run say, but for what is not on this machine."""
    try:
        make_plan(load_experiments(file, overrides)[0])
    except InvalidOptionsError as error:
        return [text for text in error.problems if not any(part in text for part in NOT_HERE)]
    return []


def test_the_command_line_takes_every_command(monkeypatch):
    monkeypatch.chdir(ROOT)
    typed = [command for command in commands() if command.words[0] == "rllib"]
    found = {str(command): refusal(list(command.words[1:])) for command in typed}
    assert {command: why for command, why in found.items() if why} == {}
    assert len(found) > 40


def refusal(words):
    """Why the program does not take such a command; nothing if it does."""
    printed = io.StringIO()
    try:
        with redirect_stderr(printed), redirect_stdout(printed):
            parsed = build_parser().parse_args(words)
        request = request_from(parsed)
    except InvalidOptionsError as error:
        return str(error)
    except SystemExit as end:
        is_help = words[-1:] == ["--help"] and end.code == 0
        return None if is_help else f"status {end.code}: {printed.getvalue()}"
    if words[:2] == ["train", "file"]:
        named = example(str(request.file))  # by its name alone
        if request.file.parent == Path("tuned_examples") or named.is_file():
            return wrong_settings(named if named.is_file() else request.file, request.overrides)
    return None


def test_the_programs_and_options_that_commands_name_exist():
    missing = []
    for command in commands():
        if command.words[0] not in ("python", "pytest", "python3"):
            continue
        files = [word for word in command.words if word.startswith(("benchmarks/", "tests/"))]
        missing += [(str(command), file) for file in files if not (ROOT / file).exists()]
        if command.words[0] == "python" and files and (ROOT / files[0]).exists():
            declared = (ROOT / files[0]).read_text()
            options = [word for word in command.words if word.startswith("--")]
            missing += [(str(command), o) for o in options if f'"{o}"' not in declared]
    assert not missing


@pytest.fixture
def imagined(monkeypatch):
    """The modules of their own that the docs let users write."""

    class MyCallback(MinecraftCallback):
        def __init__(self, goal):
            self.goal = goal

    class WalkFar(MinecraftCallback):
        def __init__(self, per_metre):
            self.per_metre = per_metre

    class MyPolicy(ConvGRURLModule):
        @classmethod
        def check_options(cls, options):
            """Has options of its own."""

        def build_network(self, options):
            return super().build_network({})

    package, module, parts_of_mine = map(
        ModuleType, ("my_package", "my_package.my_module", "my_parts")
    )
    module.MyCallback, module.SteveOneRLModule, module.MyPolicy = MyCallback, MyPolicy, MyPolicy
    parts_of_mine.WalkFar = WalkFar
    for one in (package, module, parts_of_mine):
        monkeypatch.setitem(sys.modules, one.__name__, one)


def as_experiment(settings):
    """Complete a block of settings with those of an example that it fits."""
    ((name, body),) = settings.items() if len(settings) == 1 else [("", None)]
    if isinstance(body, dict) and set(body) <= set(EXPERIMENT_KEYS):
        sections, config = body, body.get("config", {})
    else:
        name, sections = "of_the_docs", {}
        config = settings.get("config", settings)
        if "callbacks" in config:
            config = {"env_config": config}
    is_small = "module_class" in config or not {"model", "prior"} & set(config)
    (base,) = yaml.safe_load(example("cow" if is_small else "cow_vpt").read_text()).values()
    del base["config"]["replay_buffer"]  # it fits the example's number of environments
    merged = copy.deepcopy({**base, **sections})
    merged["config"] = {**base["config"], **config}
    merged["config"]["env_config"] = {
        **base["config"]["env_config"],
        **config.get("env_config", {}),
    }
    return {name: merged}


def test_tasks_are_such():
    assert {
        where: marks
        for where, task in TASKS.items()
        if (marks := BenchmarkTask.from_mapping("of_the_docs", task).marks())
    } == {}


@pytest.fixture
def demonstrated(tmp_path):
    """The recordings that docs speak of, with a saved game."""
    options = RecorderOptions(str(tmp_path / "demos" / "episodes"), snapshot_interval=1)
    recorder = EpisodeRecorder(MineStudioEnv(obs_size=(32, 32)), options, on_request=True)
    recorder.reset(seed=0)
    recorder.step(recorder.unwrapped.sim.noop_action())
    recorder.keep()
    recorder.close()


def test_all_settings_are_taken(tmp_path, monkeypatch, imagined, demonstrated):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if find_spec("mlflow") is None:
        monkeypatch.setattr(trackers, "find_spec", lambda name: name)
        monkeypatch.setenv(trackers.ALLOW_FOLDERS, "true")  # asking about them would import it
    refused = {}
    for where in sorted(YAML.keys() - TASKS.keys()):
        file = tmp_path / f"{where}.yaml"
        file.write_text(yaml.safe_dump(as_experiment(YAML[where])))
        refused[where] = wrong_settings(file)
    assert {where: problems for where, problems in refused.items() if problems} == {}
    assert len(refused) > 20
