"""Every command and every setting in the docs is one that the program takes.

Nothing is trained here: commands go through the real parser, settings through the reader of
experiment files and the checks before a run. `test_tutorials.py` runs whole pages, and
`test_python_snippets.py` what is Python.
"""

import copy
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from rllib_minestudio.benchmark.task import BenchmarkTask
from rllib_minestudio.cli.main import build_parser
from rllib_minestudio.env.callbacks import MinecraftCallback
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.experiments.outputs import trackers
from rllib_minestudio.experiments.reading.experiment_file import EXPERIMENT_KEYS, load_experiments
from rllib_minestudio.experiments.reading.tune_plan import make_plan
from rllib_minestudio.models.conv_gru_rl_module import ConvGRURLModule
from tests.docs.pages import ROOT, fenced
from tests.docs.snippets import WITH_CODE, commands, example, parts, snippets

OTHER_PROGRAMS = {
    *("python3", "python", "pip", "pytest", "sphinx-build", ".", "export", "cd"),
    *("ray", "conda", "apt-get"),
}
"""What commands of the docs begin with that are not ours. Those that run files of this project are
checked below; README's set-up is what `.ci/run` runs."""

NOT_HERE = (
    "are no path on this machine, and as a Hugging Face id they could not be fetched",
    "'results/stone_pickaxe_bc/latest' names no checkpoint",
    "but there is no folder 'demos/",
    "There is no folder 'demonstrations/cow' with recordings",
    "engine='minecraft' cannot start on this machine",
)
"""What checks say of weights, recordings and a game that this machine lacks, if that is all."""

TYPED = [command for command in commands() if command.words[0] == "rllib"]
YAML = [
    pytest.param(part, id=f"{snippet}-{number}")
    for snippet in snippets("yaml")
    for number, part in enumerate(parts(snippet))
]
TASKS = [param for param in YAML if "time_limit" in yaml.safe_load(param.values[0])]
SETTINGS = [param for param in YAML if param not in TASKS]


def test_commands_stand_in_blocks_of_bash_and_all_are_known():
    for page in WITH_CODE:
        for language, text in fenced(page.read_text()):
            assert language in ("bash", "python", "yaml", "text", ""), (page.name, language)
            if language in ("text", ""):
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


@pytest.mark.parametrize("command", TYPED, ids=str)
def test_the_command_line_takes_it(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    words = list(command.words[1:])
    if words[-1:] == ["--help"]:
        with pytest.raises(SystemExit, match="0"):
            build_parser().parse_args(words)
        return
    parsed = build_parser().parse_args(words)
    if words[:2] == ["train", "file"] and Path(parsed.file).parent == Path("tuned_examples"):
        assert not wrong_settings(Path(parsed.file), parsed.set)


@pytest.mark.parametrize(
    "command", [c for c in commands() if c.words[0] in ("python", "pytest", "python3")], ids=str
)
def test_the_programs_and_options_that_it_names_exist(command):
    files = [word for word in command.words if word.startswith(("benchmarks/", "tests/"))]
    for file in files:
        assert (ROOT / file).exists()
    if command.words[0] == "python" and files:
        declared = (ROOT / files[0]).read_text()
        for option in (word for word in command.words if word.startswith("--")):
            assert f'"{option}"' in declared, option


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
    parts_of_mine.WalkFar, parts_of_mine.MyPolicy = WalkFar, MyPolicy
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


@pytest.mark.parametrize("text", TASKS)
def test_a_task_is_one(text):
    assert not BenchmarkTask.from_mapping("of_the_docs", yaml.safe_load(text)).marks()


@pytest.mark.parametrize("text", SETTINGS)
def test_the_settings_are_taken(text, tmp_path, monkeypatch, imagined):
    file = tmp_path / "experiment.yaml"
    file.write_text(yaml.safe_dump(as_experiment(yaml.safe_load(text))))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if find_spec("mlflow") is None:
        monkeypatch.setattr(trackers, "find_spec", lambda name: name)
        monkeypatch.setenv(trackers.ALLOW_FOLDERS, "true")  # asking about them would import it
    assert not wrong_settings(file)
