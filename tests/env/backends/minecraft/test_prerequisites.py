"""What the game needs: found or missed before anything is launched, each with its fix."""

import builtins

import pytest

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.backends.minecraft import prerequisites
from rllib_minestudio.env.backends.minecraft.process import MinecraftOptions
from rllib_minestudio.env.voxel.server import launcher
from rllib_minestudio.errors import EngineError, InvalidOptionsError


@pytest.fixture
def bare_machine(tmp_path, monkeypatch):
    """A machine with nothing on it, and a prompt that nobody answers."""

    def prompt(*_):
        raise AssertionError("a prompt")

    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setattr(builtins, "input", prompt)
    monkeypatch.setattr(prerequisites, "_JAVA_HOMES", tmp_path / "jvm")
    monkeypatch.setenv("PATH", str(programs))
    for name in ("JAVA_HOME", "DISPLAY", "MINESTUDIO_GPU_RENDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MINESTUDIO_DIR", str(tmp_path / "MineStudio"))
    return tmp_path


def program(folder, name, script=""):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def by_subject(options):
    return {each.subject: each for each in prerequisites.examine(options)}


def test_everything_that_is_missing_is_listed_with_its_fix(bare_machine):
    with pytest.raises(EngineError) as raised:
        MineStudioEnv(engine="minecraft")
    message = str(raised.value)
    for text in ("no program 'java'", "openjdk-8-jdk", "mcprec-6.13.jar does not exist"):
        assert text in message
    for text in ("rllib engine install --embedded", "apt-get install xvfb", "engine='voxel'"):
        assert text in message


def test_nothing_is_missing_once_the_embedded_engine_is_installed(bare_machine):
    launcher.install(bare_machine / "MineStudio", start=["true"])
    found = by_subject(MinecraftOptions())
    del found["package minestudio"]
    assert all(each.ok and not each.fix for each in found.values()), found


@pytest.mark.parametrize(
    ("version", "ok"),
    [
        ('openjdk version "1.8.0_392"', True),
        ('java version "1.8.0_202"', True),
        ('openjdk version "17.0.15" 2025-04-15', False),
        ('openjdk version "11.0.2"', False),
        ("Segmentation fault", False),
    ],
)
def test_java_must_be_of_version_8(bare_machine, version, ok):
    program(bare_machine / "programs", "java", f"echo '{version}' >&2")
    found = prerequisites.java(MinecraftOptions())
    assert found.ok == ok
    assert ok or "openjdk=8" in found.fix


def test_java_home_comes_before_the_path(bare_machine, monkeypatch):
    program(bare_machine / "programs", "java", "echo 'version \"17.0.1\"' >&2")
    program(bare_machine / "java8" / "bin", "java", "echo 'version \"1.8.0\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "java8"))
    assert prerequisites.java(MinecraftOptions()).ok


def test_a_java_8_beside_another_is_pointed_at(bare_machine):
    program(bare_machine / "programs", "java", "echo 'version \"17.0.1\"' >&2")
    for name in ("java-17-openjdk-amd64", "java-18", "java-8-openjdk-amd64"):
        program(bare_machine / "jvm" / name / "bin", "java")
    fix = prerequisites.java(MinecraftOptions()).fix
    assert fix == f"Run: export JAVA_HOME={bare_machine / 'jvm' / 'java-8-openjdk-amd64'}"


def test_xvfb_run_alone_is_not_enough(bare_machine):
    """Its package only recommends xauth, without which it starts nothing."""
    for name in ("xvfb-run", "Xvfb"):
        program(bare_machine / "programs", name)
    found = prerequisites.display(MinecraftOptions())
    assert found.detail == "no program 'xauth' in PATH"
    assert "apt-get install xvfb xauth" in found.fix
    program(bare_machine / "programs", "xauth")
    assert prerequisites.display(MinecraftOptions()).ok


def test_the_display_must_fit(bare_machine, monkeypatch):
    def display(**options):
        return prerequisites.display(MinecraftOptions(**options))

    assert "xvfb" in display().fix
    monkeypatch.setenv("MINESTUDIO_GPU_RENDER", "1")
    assert "VirtualGL" in display().fix
    assert not display(display="existing").ok
    program(bare_machine / "programs", "vglrun")
    assert display().ok
    assert "no device /dev/dri/card77" in display(device="/dev/dri/card77").detail
    monkeypatch.setenv("DISPLAY", ":3")
    assert display(display="existing").ok


def test_options_are_checked_all_at_once():
    wrong = {
        "java_memory": "2 gigabytes",
        "display": "xfvb",
        "step_timeout_s": 0,
        "starts_at_once": 0,
        "first_port": 80,
        "restart_interval": -1,
        "launch_timout_s": 3,
    }
    with pytest.raises(InvalidOptionsError) as raised:
        MineStudioEnv(minecraft=wrong)
    problems = raised.value.problems
    assert len(problems) == len(wrong)
    text = "\n".join(problems)
    assert "Did you mean 'xvfb'?" in text and "Did you mean 'launch_timeout_s'?" in text
    assert all(problem.startswith("minecraft: ") for problem in problems)
