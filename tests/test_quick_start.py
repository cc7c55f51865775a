"""Processes start sooner, and are as deterministic as RLlib makes them."""

import importlib
import inspect
import json
import subprocess
import sys

import pytest

from rllib_minestudio import registration
from rllib_minestudio.registration import when_imported

SEEDED = """
import gc, json, sys
{before}
import random
import numpy as np
import torch
from ray.rllib.utils.debug import update_global_seed_if_necessary

def state():
    return [
        torch.initial_seed(),
        torch.get_deterministic_debug_mode(),
        torch.backends.cudnn.deterministic,
        torch.backends.cudnn.benchmark,
        torch.rand(3).tolist(),
        float(np.random.rand()),
        random.random(),
    ]

update_global_seed_if_necessary("torch", 3)
found = {{"state": state(), "loaded": "torch._inductor" in sys.modules}}
import torch._inductor.config as compiler
found["compiler"] = compiler.deterministic
update_global_seed_if_necessary("torch", 3)
found["again"] = state()
found["threshold"] = gc.get_threshold()[0]
print(json.dumps(found))
"""


def seeded(before):
    """What RLlib's seed leaves in a new process."""
    command = [sys.executable, "-c", SEEDED.format(before=before)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_a_seeded_process_is_as_rllib_leaves_it_but_for_the_compiler():
    usual, quick = seeded("pass"), seeded("import rllib_minestudio")
    assert usual["again"] == usual["state"] == quick["state"] == quick["again"]
    assert usual["compiler"] == quick["compiler"]
    assert not quick["loaded"]
    assert quick["threshold"] == max(usual["threshold"], registration.COLLECT_AFTER)


def test_connectors_know_the_arguments_that_they_were_built_with(monkeypatch):
    from ray.rllib.connectors import connector_v2

    class Scaled(connector_v2.ConnectorV2):
        def __init__(self, factor, offset=2):
            super().__init__()

        def __call__(self, **data):
            return data

    assert connector_v2.inspect is not inspect and connector_v2.inspect.isclass(Scaled)
    quick = Scaled(3).get_ctor_args_and_kwargs()
    monkeypatch.setattr(connector_v2, "inspect", inspect)
    assert quick == Scaled(3).get_ctor_args_and_kwargs() == ((), {"factor": 3, "offset": 2})


def test_what_the_user_has_chosen_for_garbage_stays(monkeypatch):
    chosen = []
    monkeypatch.setattr(registration.gc, "set_threshold", lambda *found: chosen.append(found))
    for found in ((0, 10, 10), (50_000, 20, 20), (2_000, 10, 0)):
        monkeypatch.setattr(registration.gc, "get_threshold", lambda found=found: found)
        registration.collect_less_often()
    assert chosen == [(registration.COLLECT_AFTER, 10, 0)]


def test_a_module_is_handed_over_once_to_each_that_waits_for_it(tmp_path, monkeypatch):
    (tmp_path / "to_be_imported.py").write_text("number = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    seen = []

    def first(module):
        seen.append(("first", module.number))

    def second(module):
        seen.append(("second", module.number))

    for act in (first, second, first):
        when_imported("to_be_imported", act)
    assert not seen
    try:
        importlib.import_module("to_be_imported")
        assert seen == [("first", 1), ("second", 1)]
        when_imported("to_be_imported", first)
        assert seen[2:] == [("first", 1)]
    finally:
        del sys.modules["to_be_imported"]
