"""The generated pages hold every option; an option without a description is an error."""

import re
from dataclasses import dataclass, fields

import pytest

import rllib_minestudio
from rllib_minestudio.algorithms.options import ALGORITHMS
from rllib_minestudio.algorithms.rllib_settings import HONOURED, MEANINGLESS, REFUSED
from rllib_minestudio.cli.main import COMMANDS
from rllib_minestudio.env.callbacks import CALLBACKS
from rllib_minestudio.env.env_options import EnvOptions
from rllib_minestudio.experiments.experiment_file import EXPERIMENT_KEYS
from rllib_minestudio.experiments.sections import RLLIB_NAMES, SCHEDULERS
from rllib_minestudio.experiments.trackers import TRACKERS
from tests.docs.pages import DOCS, ROOT
from tools.reference import experiments
from tools.reference.environment import section as environment_section
from tools.reference.pages import PAGES, write
from tools.reference.tables import dataclass_table, described, signature_table, values


def test_pages_are_written_once_and_not_committed(tmp_path):
    write(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == set(PAGES)
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {f"/docs/{name}" for name in PAGES} <= set(ignored)
    written = {name: (tmp_path / name).stat().st_mtime_ns for name in PAGES}
    write(tmp_path)
    assert written == {name: (tmp_path / name).stat().st_mtime_ns for name in PAGES}


def test_nothing_is_left_out():
    environment = environment_section()
    for option in fields(EnvOptions):
        listed = f"| `{option.name}` |" in environment
        assert listed is (option.name not in ("worker_index", "vector_index")), option.name
    options, commands = PAGES["options.md"](), PAGES["commands.md"]()
    assert environment in options
    assert all(f"\n### {name}\n" in options for name in (*CALLBACKS, *ALGORITHMS))
    assert all(f"\n## rllib {name}" in commands for name in COMMANDS)
    settings = PAGES["rllib_settings.md"]()
    assert all(f"`{name}`" in settings for name in {**HONOURED, **REFUSED, **MEANINGLESS})
    keys = experiments.section()
    assert all(f"| `{key}` |" in keys for key in (*EXPERIMENT_KEYS, *RLLIB_NAMES))
    assert {*experiments._OF_RLLIB, "episodes"} == set(RLLIB_NAMES)
    assert all(f"\n### `scheduler.{name}`\n" in keys for name in SCHEDULERS)
    assert all(f"\n### `trackers.{name}`\n" in keys for name in TRACKERS if name != "tensorboard")
    pages = (DOCS / "api.md").read_text()
    listed = set(re.findall(r"^\.\. auto\w+:: [\w.]+\.(\w+)$", pages, re.MULTILINE))
    assert set(rllib_minestudio.__all__) <= listed


@dataclass
class Options:
    """Some.

    Attributes:
        told: What it does,
            on two lines.
    """

    told: int = 1
    untold: str | None = None


def test_an_option_without_a_description_is_an_error():
    with pytest.raises(LookupError, match="Options: the docstring does not say what 'untold' is"):
        dataclass_table(Options)
    assert "| `told` | `1` | integer | What it does, on two lines. |" in dataclass_table(
        Options, without=["untold"]
    )

    class Constructed:
        def __init__(self, size: int, *, name: str = "a") -> None:
            """Build it.

            Args:
                size: How large | small.
            """

    with pytest.raises(LookupError, match=r"Constructed: .* 'name'"):
        signature_table(Constructed.__init__, "Constructed")


def test_docstrings_and_types_are_put_into_words():
    told = described("Text.\n\nArgs:\n    a: One.\n    **b: Two,\n        more.\n\nRaises:\n    E")
    assert told == {"a": "One.", "b": "Two, more."}
    assert described(None) == {}
    assert values(tuple[int, int]) == "list of 2 integers"
    assert values(str | None) == "text, or null"
    assert values(dict[str, int]) == "mapping"
    assert values(list[int] | dict[str, int]) == "list, or mapping"
