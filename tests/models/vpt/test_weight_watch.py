"""Watches of weights come and go while other networks are built."""

from __future__ import annotations

import gc

from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

from rllib_minestudio.models.vpt.acting import WeightWatch


def test_a_watch_collected_while_a_module_is_assigned_disturbs_nothing():
    collecting = register_module_module_registration_hook(lambda *_: gc.collect() and None)
    try:
        for _ in range(3):
            watch = WeightWatch(nn.Linear(2, 2))
            watch.itself = watch  # only the garbage collector can end it
            del watch
            nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    finally:
        collecting.remove()


def test_every_living_watch_notes_what_is_assigned_to_its_own_network():
    network, other = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2))
    watches = [WeightWatch(network), WeightWatch(network), WeightWatch(other)]
    network[0] = nn.Linear(2, 2)
    assert [watch.has_changed for watch in watches] == [True, True, False]
