"""`benchmarks/gpu.py` goes on whatever becomes of a stage, and says what it could not do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from rich.console import Console

from tests.algorithms.actors import is_running, wait_until
from tests.processes import interpreter

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"

STAGES = """
import os, subprocess, sys, time
from pathlib import Path
from gpu_stages.rows import Row

def finds_a_device(setting):
    yield Row("CUDA device", "Pretended 9000")

def finds_none(setting):
    yield Row("CUDA device", "none")

def works(setting):
    yield Row("speed", 1.0, "ms")
    yield Row("speed", 2.0, "ms", beside=5.0, whose="VPTPolicy", goal="2 times as fast", met=True)
    yield Row("told", f"{setting.device}, {setting.short}")

def fails(setting):
    yield Row("until then", 3.0)
    raise ValueError("no such [bold] kernel")

def dies(setting):
    os.abort()
    yield

def hangs(setting):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield Row("child", child.pid)
    time.sleep(600)

def sees(setting):
    yield Row("sees", os.environ["CUDA_VISIBLE_DEVICES"])
"""


@pytest.fixture
def stages(monkeypatch, tmp_path):
    """The stages above, as `Stage(...)` takes them, and the modules that run and show stages."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "pretended.py").write_text(STAGES)
    paths = [str(tmp_path / "code"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    from gpu_stages import processes

    def make(name, limit_s=60.0, **options):
        return processes.Stage(name, f"pretended:{name}", limit_s, **options)

    yield make
    for name in [name for name in sys.modules if name.partition(".")[0] == "gpu_stages"]:
        del sys.modules[name]


def run(stages, folder, seconds=120.0):
    from gpu_stages.processes import run_all

    ends_at = time.monotonic() + seconds
    return {o.stage: o for o in run_all(stages, folder, ends_at=ends_at, short=False)}


@pytest.mark.slow
def test_whatever_becomes_of_a_stage_the_next_is_run(stages, tmp_path):
    names = ["finds_a_device", "fails", "dies", "hangs", "works"]
    limits = dict.fromkeys(names, 60.0) | {"hangs": 6.0}
    outcomes = run([stages(name, limits[name]) for name in names], tmp_path)
    assert [o.status for o in outcomes.values()] == [
        "done",
        "failed",
        "failed",
        "timed out",
        "done",
    ]
    assert outcomes["fails"].reason == "ValueError: no such [bold] kernel"
    assert outcomes["fails"].rows[0]["value"] == 3.0, "what was found before counts"
    (child,) = outcomes["hangs"].rows
    assert wait_until(lambda: not is_running(child["value"]), 10.0), (
        "what a stage started ends with it"
    )
    assert json.loads((tmp_path / "works.json").read_text()) == outcomes["works"].rows
    speed, told = outcomes["works"].rows
    assert speed["value"] == 2.0, "a later row takes an earlier one's place"
    assert told["value"] == "cuda, False"


def test_without_a_device_sizes_are_small_and_what_needs_one_is_left_out(stages, tmp_path):
    needy = stages("fails", needs_device=True)
    blind = stages("sees", environment={"CUDA_VISIBLE_DEVICES": ""})
    outcomes = run([stages("finds_none"), needy, stages("works"), blind], tmp_path)
    assert outcomes["fails"].status == "skipped"
    assert outcomes["fails"].reason == "needs a CUDA device"
    assert outcomes["works"].rows[-1]["value"] == "cpu, True"
    assert outcomes["sees"].rows[0]["value"] == ""


def test_no_stage_begins_when_the_time_is_over(stages, tmp_path):
    outcomes = run([stages("works"), stages("fails")], tmp_path, seconds=1.0)
    assert {o.reason for o in outcomes.values()} == {"no time left"}


def test_the_table_and_the_file_have_everything(stages, tmp_path):
    from gpu_stages.report import as_json, table

    outcomes = list(
        run([stages("finds_none"), stages("works"), stages("fails")], tmp_path).values()
    )
    console = Console(width=160, record=True, file=(tmp_path / "table").open("w"))
    console.print(table(outcomes, "title"))
    shown = console.export_text()
    for text in ("2 ms", "VPTPolicy: 5 ms, 2.50 times ours", "ok (2 times as fast)"):
        assert text in shown
    assert "ValueError: no such [bold] kernel" in shown
    summary = json.loads(json.dumps(as_json(outcomes, seconds=1.0)))
    assert summary["not_done"] == ["fails"]
    assert summary["stages"]["works"]["rows"][0]["whose"] == "VPTPolicy"


def test_the_limits_fit_into_nine_minutes_and_the_marked_tests_into_their_folders(stages):
    import gpu
    from gpu_stages.gpu_tests import FOLDERS

    assert sum(stage.limit_s for stage in gpu.STAGES) <= gpu.BUDGET_S == 9 * 60
    for file in (ROOT / "tests").rglob("test_*.py"):
        if "mark.gpu" in (text := file.read_text()) or ", device)" in text:
            assert file == Path(__file__) or any(file.is_relative_to(ROOT / f) for f in FOLDERS)


STAGES_ARE_FORKED = """
import os, sys
sys.executable = os.environ["FORKED_PYTHON"]
import gpu
sys.exit(gpu.main())
"""


def last_lines(log):
    return log.read_text(errors="replace")[-2000:] if log.exists() else ""


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_a_machine_without_a_device_runs_what_it_can(tmp_path):
    done = subprocess.run(
        # Nine minutes are for a device, not for a busy processor.
        [sys.executable, "-c", STAGES_ARE_FORKED, "--out", tmp_path / "out", "--budget", "1500"],
        env={**os.environ, "PYTHONPATH": f"{BENCHMARKS}:{ROOT}", "FORKED_PYTHON": interpreter()},
        capture_output=True,
        text=True,
    )
    summary = json.loads((tmp_path / "out" / "gpu.json").read_text())
    logs = {name: last_lines(tmp_path / "out" / f"{name}.log") for name in summary["not_done"]}
    assert logs == {"cow_1x": ""}, "what the stages that were not done had printed"
    assert done.returncode == 0, done.stderr
    assert "CUDA device: none" in done.stdout
    rows = {row["what"]: row for o in summary["stages"].values() for row in o["rows"]}
    assert rows["two learners on one cpu, gloo"]["value"] == "possible"
    assert rows["environment steps"]["value"] > 0
    assert rows["iteration of the checkpoint"]["met"]
    assert all(row["met"] is not False for name, row in rows.items() if name != "learner busy")
