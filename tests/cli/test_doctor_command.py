"""`rllib doctor`: real checks, in processes of their own, with time limits and an exit status."""

import contextlib
import json
import signal
import subprocess
import sys
import time

import pytest

from rllib_minestudio import doctor
from rllib_minestudio.cli import doctor_command
from rllib_minestudio.cli.doctor_command import NOT_WELL
from rllib_minestudio.cli.main import main
from rllib_minestudio.doctor import CHECKS, MINECRAFT, TRAINING, Check, Health, diagnose
from rllib_minestudio.env.voxel import kernel_cache, kernels
from rllib_minestudio.env.voxel.server import launcher
from tests.processes import python


def by_name(name):
    (check,) = (check for check in CHECKS if check.name == name)
    return check


def found(*names):
    return {d.check.name: d.health for d in diagnose(tuple(map(by_name, names)))}


@pytest.mark.slow
def test_what_training_needs_is_found_where_the_tests_run():
    kernel_cache.warmup()
    healths = found("Python", "PyTorch", "kernel cache", "embedded engine")
    assert all(health.ok for health in healths.values()), healths
    assert sys.executable in healths["Python"].detail
    assert "steps/s" in healths["embedded engine"].detail


@pytest.mark.slow
def test_ray_is_started_for_real():
    (ray,) = diagnose((by_name("Ray"),))
    assert ray.health.ok, ray.health


def test_a_missing_package_and_a_wrong_version_are_named(monkeypatch):
    wanted = ["no-such-package>=1", "numpy>=99", "av>=1", "pytest>=99; extra == 'test'"]
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: wanted)
    result = doctor.requirements()
    assert not result.ok
    assert "no-such-package is missing" in result.detail
    assert "is not >=99" in result.detail
    assert "pytest" not in result.detail and "av " not in result.detail


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv(kernels.CACHE_VARIABLE, str(tmp_path / "file"))
    result = found("kernel cache")["kernel cache"]
    assert not result.ok
    assert kernels.CACHE_VARIABLE in result.fix


def test_the_embedded_engine_counts_as_minecraft(monkeypatch, tmp_path):
    monkeypatch.setenv("MINESTUDIO_DIR", str(tmp_path))
    before = found("engine jar")["engine jar"]
    assert not before.ok
    assert "rllib engine install --embedded" in before.fix
    launcher.install(tmp_path)
    assert all(h.ok for h in found("engine jar", "Java 8", "display").values())


def test_the_login_is_looked_up_without_asking(monkeypatch, tmp_path):
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_BASE_URL", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert not found("W&B login")["W&B login"].ok
    file = tmp_path / ".netrc"
    file.write_text("machine api.wandb.ai login user password secret\n")
    file.chmod(0o600)
    shown = found("W&B login")["W&B login"]
    assert shown.ok and "secret" not in shown.detail


def test_a_missing_tracker_comes_with_the_way_to_install_it(monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    health = doctor.wandb_login()
    assert not health.ok and "'rllib_minestudio[wandb]'" in health.fix
    assert not by_name("W&B login").needed


def test_an_unreachable_hub_is_a_finding(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    result = found("downloads")["downloads"]
    assert not result.ok
    assert "127.0.0.1:9" in result.detail


def stand_in(tmp_path, body):
    """A program in the place of the Python that runs the check."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("body", "seconds", "complaint"),
    [
        ("echo $$ > pids; sleep 300 & echo $! >> pids; wait", 1, "no answer within 1 s"),
        ("echo 'driver is upset' >&2; exit 3", 60, "driver is upset"),
        ("kill -SEGV $$", 60, "it ended with status -11"),
    ],
)
def test_a_check_that_hangs_or_crashes_is_a_finding(
    monkeypatch, tmp_path, body, seconds, complaint
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor.sys, "executable", stand_in(tmp_path, body))
    start = time.monotonic()
    (found,) = diagnose((Check("x", TRAINING, seconds, doctor.python),))
    assert time.monotonic() - start < 60
    assert not found.health.ok
    assert complaint in found.health.detail
    started = (tmp_path / "pids").read_text().split() if (tmp_path / "pids").exists() else []
    while any(running(int(pid)) for pid in started):
        assert time.monotonic() - start < 60, "killed, but not gone"
        time.sleep(0.05)


def test_a_doctor_that_is_interrupted_leaves_nothing_running(tmp_path):
    program = stand_in(tmp_path, f"echo $$ >> {tmp_path}/pids; exec sleep 300")
    code = (
        # A shell ignores it in what it starts in the background, perhaps these tests.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import sys; from rllib_minestudio import doctor\n"
        "from rllib_minestudio.cli.main import main\n"
        f"sys.executable = {program!r}\n"
        "sys.exit(main(['doctor']))"
    )
    process = python("-c", code)
    deadline = time.monotonic() + 60
    pids = tmp_path / "pids"
    while not pids.exists() or len(pids.read_text().split()) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    while process.poll() is None:  # whoever is in a hurry does it again
        assert time.monotonic() < deadline, "it has not ended"
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
    while any(running(int(pid)) for pid in pids.read_text().split()):
        assert time.monotonic() < deadline, "it has left processes"
        time.sleep(0.05)


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def shown(monkeypatch, *checks):
    """Replace the checks by ones with a known outcome."""
    table = tuple(
        Check(name, group, 10, lambda: None, needed=needed) for name, group, needed, _ in checks
    )
    healths = {
        name: Health(ok, f"{name} [seen]", "" if ok else "mend") for name, _, _, ok in checks
    }
    monkeypatch.setattr(doctor_command, "CHECKS", table)
    monkeypatch.setattr(
        doctor,
        "_run",
        lambda check, started: doctor.Diagnosis(check, healths[check.name], 0.1),
    )


def test_the_exit_status_is_about_what_the_engine_needs(monkeypatch, capsys):
    shown(monkeypatch, ("A", TRAINING, True, True), ("B", MINECRAFT, True, False))
    assert main(["doctor"]) == 0
    assert "mend" in capsys.readouterr().out
    assert main(["doctor", "--engine", "minecraft"]) == NOT_WELL
    shown(monkeypatch, ("A", TRAINING, False, False))
    assert main(["doctor"]) == 0
    shown(monkeypatch, ("A", TRAINING, True, False))
    assert main(["doctor"]) == NOT_WELL


def test_json_says_the_same(monkeypatch, capsys):
    shown(monkeypatch, ("A", TRAINING, True, True), ("B", TRAINING, True, False))
    assert main(["doctor", "--json"]) == NOT_WELL
    report = json.loads(capsys.readouterr().out)
    assert not report["ok"]
    assert [check["name"] for check in report["checks"]] == ["A", "B"]
    assert report["checks"][1] == {
        "name": "B",
        "group": TRAINING,
        "needed": True,
        "ok": False,
        "detail": "B [seen]",
        "fix": "mend",
        "seconds": 0.1,
    }


def test_every_check_has_a_name_of_its_own():
    assert len({check.name for check in CHECKS}) == len(CHECKS)
