"""The released minestudio package against the embedded engine behind its wire protocol."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.voxel import kernel_cache
from rllib_minestudio.env.voxel.server import launcher

FAULTY_ENGINE = Path(__file__).parents[2] / "voxel" / "server" / "faulty_engine.py"

QUICK = {"launch_timeout_s": 60.0, "reset_timeout_s": 30.0, "step_timeout_s": 30.0}


class Engine:
    """An engine directory of a test's own, and the faults that its engines shall have."""

    def __init__(self, directory, set_variable):
        self.directory = directory
        self.state = directory / "launches"
        self._set_variable = set_variable
        launcher.install(directory, start=[sys.executable, str(FAULTY_ENGINE)])
        set_variable("ENGINE_FAULTS_STATE", str(self.state))

    @property
    def options(self):
        """What `env_config` needs."""
        # Test runs on one machine get out of each other's way, and of games at 20000, the default.
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 4
        first_port = 10000 + worker * 2000 + os.getpid() % 40 * 50
        minecraft = {**QUICK, "directory": str(self.directory), "first_port": first_port}
        return {"engine": "minecraft", "minecraft": minecraft, "render_size": [128, 128]}

    def with_limits(self, **seconds):
        """The options with other limits, `step_timeout_s=1.0` for one."""
        options = self.options
        return {**options, "minecraft": {**options["minecraft"], **seconds}}

    def fail(self, at, kind, **details):
        """Plan a fault for the engines that are launched from now on."""
        planned = json.loads(os.environ.get("ENGINE_FAULTS", "[]"))
        fault = {"at": at, "kind": kind, **details}
        self._set_variable("ENGINE_FAULTS", json.dumps([*planned, fault]))

    @property
    def launches(self):
        """Processes of the engines that have been launched so far."""
        return [int(pid) for pid in self.state.read_text().split()] if self.state.exists() else []

    def living(self):
        """Those of them that still run."""
        return [pid for pid in self.launches if _runs(pid)]


def _runs(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def isolate(monkeypatch, temporary):
    """Make this process and its children a node of their own, without faults."""
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    for name in ("ENGINE_FAULTS", "MINESTUDIO_GPU_RENDER", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Compile the engine's kernels before a launch with a deadline has to."""
    kernel_cache.warmup()


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """An engine directory and temporary folder of this test's own."""
    temporary = tempfile.mkdtemp(prefix="node")  # short: Ray makes sockets below it
    isolate(monkeypatch, temporary)
    engine = Engine(tmp_path / "MineStudio", monkeypatch.setenv)
    yield engine
    shutil.rmtree(temporary, ignore_errors=True)
    assert engine.living() == []


@pytest.fixture
def make_env(engine):
    """Make environments that are closed after the test."""
    envs = []

    def make(**options):
        envs.append(MineStudioEnv({"num_empty_frames": 1, **engine.options, **options}))
        return envs[-1]

    yield make
    for env in envs:
        env.close()


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """One env for all tests that only look at it; its observations are wider than high."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        isolate(monkeypatch, tmp_path_factory.mktemp("node"))
        engine = Engine(tmp_path_factory.mktemp("engine"), monkeypatch.setenv)
        env = MineStudioEnv(
            {**engine.options, "obs_size": [96, 64], "num_empty_frames": 0},
            callbacks=[
                {"Commands": []},
                {"SummonMobs": {"mobs": []}},
                {"FastReset": {"biomes": ["plains"], "random_tp_range": 200}},
                {"JudgeReset": 4},
            ],
        )
        yield env
        env.close()


@pytest.fixture
def cow_task():
    """The environment of the tuned example: MineStudio's quick start."""
    example = Path(__file__).parents[4] / "tuned_examples" / "cow.yaml"
    return yaml.safe_load(example.read_text())["cow"]["config"]["env_config"]
