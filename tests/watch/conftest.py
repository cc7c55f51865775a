"""A small task, the request to watch it, and the server in a thread."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import pytest
import yaml

from rllib_minestudio.env.voxel import kernel_cache
from rllib_minestudio.watch.catalogue import Catalogue
from rllib_minestudio.watch.request import WatchRequest
from rllib_minestudio.watch.server import WatchServer
from rllib_minestudio.watch.session import Session

STEPS = 40

TASK = {
    "meadow": {
        "env": "MineStudioEnv",
        "config": {
            "env_config": {
                "obs_size": [32, 32],
                "render_size": [128, 72],
                "num_empty_frames": 1,
                "preferred_spawn_biome": "plains",
                "inventory": {0: {"type": "oak_planks", "quantity": 5}},
                "callbacks": [
                    {"Task": [{"name": "stroll", "text": "walk about"}]},
                    {"JudgeReset": {"time_limit": STEPS}},
                ],
            },
        },
    }
}


def task_options(**env_config):
    """The options of the task's environment, some of them changed."""
    return {**TASK["meadow"]["config"]["env_config"], **env_config}


def write_task(folder, **env_config):
    """Write the task's file, with other options of its environment."""
    file = folder / "meadow.yaml"
    task = {**TASK["meadow"], "config": {"env_config": task_options(**env_config)}}
    file.write_text(yaml.safe_dump({"meadow": task}))
    return file


def wait_until(holds, seconds=30.0):
    """Wait for a condition, and return what it returns once that is true."""
    ends = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < ends, "in vain"
        time.sleep(0.005)
    return found


def entry(catalogue, kind, title=""):
    """The key of the first entry of a kind whose title holds a text."""
    return next(e["key"] for e in catalogue.entries() if e["kind"] == kind and title in e["title"])


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """The engine's kernels, which take longer than a page waits for a picture."""
    kernel_cache.warmup()


@pytest.fixture
def catalogue(tmp_path):
    """What there is to view of the task."""
    return Catalogue(WatchRequest(source=str(write_task(tmp_path)), out=str(tmp_path / "played")))


@pytest.fixture
def session(catalogue):
    """A session that nobody looks at yet."""
    made = Session(catalogue, 20.0)
    yield made
    made.close()


@contextmanager
def served(catalogue):
    """Serve in a thread, and yield the server."""
    server = WatchServer(catalogue, 0, 20.0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(30)
        assert not thread.is_alive()
