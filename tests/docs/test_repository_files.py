"""Files for people and services around the repository name what exists."""

import configparser
import json
import os
import re
import runpy
from pathlib import Path

import pytest
import yaml

from rllib_minestudio import __version__
from rllib_minestudio.cli.flags import request_from
from rllib_minestudio.cli.main import build_parser
from tests.docs.pages import ROOT, without_code

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
DOCKERFILES = sorted((ROOT / "docker").glob("*.Dockerfile"))
IN_CODE = re.compile(r"`(rllib [^`]+)`")
LINK = re.compile(r"\]\(([^)]+)\)")


def read(*parts):
    return (ROOT / Path(*parts)).read_text()


def load(*parts):
    return yaml.safe_load(read(*parts))


def setup_cfg():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return config


def pinned(package):
    (version,) = re.findall(rf"^{package}==(\S+)$", read("constraints.txt"), re.MULTILINE)
    return version


def taken(command):
    """Whether the command line takes these words."""
    try:
        request_from(build_parser().parse_args(command.split()[1:]))
    except SystemExit as end:
        return end.code == 0  # such as --version
    return True


def test_continuous_integration_runs_the_script_on_pythons_that_are_supported():
    workflow = load(".github", "workflows", "ci.yml")
    (job,) = workflow["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == [".ci/run"] and os.access(ROOT / ".ci" / "run", os.X_OK)
    assert 0 < job["timeout-minutes"] <= 90
    classifiers = setup_cfg()["metadata"]["classifiers"]
    for version in job["strategy"]["matrix"]["python-version"]:
        assert f"Python :: {version}\n" in classifiers


def test_commits_are_checked_with_the_tested_versions():
    ruff, local = load(".pre-commit-config.yaml")["repos"]
    assert ruff["rev"] == f"v{pinned('ruff')}"
    assert [hook["id"] for hook in ruff["hooks"]] == ["ruff-check", "ruff-format"]
    (mypy,) = local["hooks"]
    assert (
        mypy["entry"] == ".venv/bin/mypy" and "mypy" in setup_cfg()["options.extras_require"]["dev"]
    )


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_an_issue_form_is_complete_and_asks_what_the_doctor_says(form):
    written = load(form)
    assert written["name"] and written["description"]
    fields = {field["id"]: field for field in written["body"]}
    assert len(fields) == len(written["body"])
    assert all(field["attributes"]["label"] for field in fields.values())
    assert {field["type"] for field in fields.values()} <= {"input", "textarea"}
    assert "rllib doctor" in fields["doctor"]["attributes"]["label"]
    commands = IN_CODE.findall(" ".join(form.read_text().split()))
    assert "rllib doctor --json" in commands
    assert [command for command in commands if not taken(command)] == []


def test_there_is_a_form_for_bugs_whose_doctor_is_no_option():
    assert [form.stem for form in FORMS] == ["bug", "feature"]
    (doctor,) = [field for field in load(FORMS[0])["body"] if field["id"] == "doctor"]
    assert doctor["validations"]["required"]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda file: file.stem)
def test_an_image_is_made_of_what_exists_and_trains_as_a_normal_user(dockerfile):
    lines = dockerfile.read_text().replace("\\\n", "").splitlines()
    instructions = [line.split(maxsplit=1) for line in lines if line[:1].isalpha()]
    copied = [words.split()[:-1] for name, words in instructions if name == "COPY"]
    assert all((ROOT / source).exists() for sources in copied for source in sources)
    (user,) = [words for name, words in instructions if name == "USER"]
    assert user not in ("root", "0")
    assert any("-c constraints.txt" in words for name, words in instructions if name == "RUN")
    last, command = instructions[-1]
    command = json.loads(command)
    assert last == "CMD" and taken(" ".join(command))
    assert (ROOT / command[-1]).is_file() and Path(command[-1]).parts[:1] in map(tuple, copied)


def test_the_images_are_for_processors_and_for_cuda():
    assert [file.name for file in DOCKERFILES] == ["cpu.Dockerfile", "cuda.Dockerfile"]
    assert "download.pytorch.org/whl/cpu" in DOCKERFILES[0].read_text()
    assert "whl/cpu" not in DOCKERFILES[1].read_text()


def test_the_citation_is_of_this_version_and_names_what_it_builds_on():
    citation, metadata = load("CITATION.cff"), setup_cfg()["metadata"]
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= citation.keys()
    assert str(citation["version"]) == __version__ == metadata["version"]
    assert citation["license"] == metadata["license"]
    assert citation["authors"] == [{"name": metadata["author"]}]
    papers = {
        identifier["value"]: (reference["authors"][0]["family-names"], reference["year"])
        for reference in citation["references"]
        for identifier in reference["identifiers"]
    }
    assert papers == {
        "arXiv:2206.11795": ("Baker", 2022),
        "arXiv:2412.18293": ("Cai", 2024),
        "arXiv:1712.09381": ("Liang", 2018),
    }


def test_site_and_licence_name_the_same_authors():
    author = setup_cfg()["metadata"]["author"]
    assert f' "{author}"\n' in read("docs", "conf.py")
    assert re.search(rf"^Copyright \(c\) \d+ {author}$", read("LICENSE"), re.MULTILINE)


@pytest.fixture(scope="module")
def setup_py():
    """What setup.py defines; nothing is built."""
    return runpy.run_path(str(ROOT / "setup.py"))


def test_a_package_index_shows_readme_without_links_that_lead_nowhere(setup_py):
    readme = read("README.md")
    relative = [link for link in LINK.findall(without_code(readme)) if "://" not in link]
    assert len(relative) > 10
    alone = setup_py["long_description"](readme, None)
    assert all("://" in link for link in LINK.findall(without_code(alone)))
    assert "docs/images" not in alone and "CITATION.cff" in alone
    source = "https://example.org/a/b"
    linked = LINK.findall(without_code(setup_py["long_description"](readme, source)))
    below = [link for link in linked if link.startswith(source)]
    assert [re.sub(rf"^{source}/(blob|raw)/HEAD/", "", link) for link in below] == relative
    assert all(("/raw/" in link) is ("/images/" in link) for link in below)


@pytest.mark.parametrize(
    ("text", "alone", "linked"),
    [
        ("[a](b.md#c), [`d`](e)", "a, `d`", "[a](S/blob/HEAD/b.md#c), [`d`](S/blob/HEAD/e)"),
        ("![A cow](docs/cow.png)", "*A cow.*", "![A cow](S/raw/HEAD/docs/cow.png)"),
        ("[a](https://b.c/d)", *2 * ("[a](https://b.c/d)",)),
        ("`[a](b)`\n```\n[c](d)\n```\n", *2 * ("`[a](b)`\n```\n[c](d)\n```\n",)),
    ],
)
def test_links_and_pictures_become_absolute_or_text_and_code_stays(setup_py, text, alone, linked):
    assert setup_py["long_description"](text, None) == alone
    assert setup_py["long_description"](text, "S") == linked


def test_readmes_links_follow_the_source_that_setup_cfg_names(setup_py):
    urls = "[metadata]\nproject_urls =\n    Docs = https://d.org\n    Source = https://s.org/a/\n"
    assert setup_py["source_address"](urls) == "https://s.org/a"
    assert setup_py["source_address"]("[metadata]\nname = a\n") is None


def test_contributors_are_given_readmes_test_command():
    (command,) = re.findall(
        r"^# Set up and run the tests\n.* && (\S*pytest .*)$", read("README.md"), re.MULTILINE
    )
    assert f"\n{command}\n" in read("CONTRIBUTING.md")


@pytest.mark.parametrize(
    ("extra", "package"), [("wandb", "wandb"), ("sb3", "sb3-contrib"), ("watch", "uvicorn")]
)
def test_who_does_not_use_a_tracker_or_another_library_does_not_install_it(extra, package):
    config = setup_cfg()
    extras = config["options.extras_require"]
    assert package not in config["options"]["install_requires"]
    assert extras[extra].startswith(f"\n{package}>=") and pinned(package)
    assert "rllib-minestudio[hub,lmdb,sb3,wandb,watch]" in extras["test"]
