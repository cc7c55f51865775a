"""What has moved is found under its old path: pickles of earlier versions name it."""

import pickle
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from rllib_minestudio import former_paths
from rllib_minestudio.former_paths import MOVED, PACKAGE


@pytest.mark.parametrize("old", MOVED)
def test_an_old_path_leads_to_the_module_that_there_is(old):
    new = f"{PACKAGE}.{MOVED[old]}"
    assert find_spec(new)
    pytest.importorskip(new, exc_type=ModuleNotFoundError)  # some need packages that are optional
    with pytest.warns(DeprecationWarning, match=new):
        former_paths._FormerPath().exec_module(type(pickle)(f"{PACKAGE}.{old}"))
    assert import_module(f"{PACKAGE}.{old}") is import_module(new)
    assert MOVED[old] not in MOVED


def test_the_changelog_shows_the_table():
    changelog = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()
    rows = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|$", changelog, re.MULTILINE)
    assert dict(rows) == MOVED


def test_a_pickle_of_an_old_path_is_read(monkeypatch):
    monkeypatch.setitem(MOVED, "once_upon.a_time", "errors")
    monkeypatch.setitem(MOVED, "once_upon", "env")
    pickled = b"crllib_minestudio.once_upon.a_time\nMineStudioError\n."
    with pytest.warns(DeprecationWarning):
        assert pickle.loads(pickled) is import_module(f"{PACKAGE}.errors").MineStudioError
