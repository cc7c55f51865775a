"""Values become plain Python, and what cannot be is left to who asks."""

from enum import Enum
from pathlib import PurePath

import numpy as np
import pytest
import torch

from rllib_minestudio.foundation.values import OMITTED, integer_or_text, plain, recordable


class Colour(str, Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({1: (True, None), "a": {2}}, {"1": [True, None], "a": [2]}),
        ([np.float32(0.5), np.float64(0.25), np.int64(3), np.bool_(True)], [0.5, 0.25, 3, True]),
        ({"a": np.arange(2), "b": torch.ones(1, 2)}, {"a": [0, 1], "b": [[1.0, 1.0]]}),
        ([np.str_("text")], ["text"]),
        ([Colour.RED, PurePath("x")], ["<Colour.RED: 'red'>", "PurePosixPath('x')"]),
    ],
)
def test_what_json_can_hold(value, expected):
    found = plain(value)
    assert found == expected
    assert repr(found) == repr(expected)  # Python's own types throughout


def test_other_objects_and_large_arrays_can_be_left_out():
    value = {"frame": np.zeros((64, 64)), "small": np.zeros(2), "objects": [object(), 1], 7: "a"}
    found = plain(value, lambda _: OMITTED, integer_or_text, largest_array=4)
    assert found == {"small": [0.0, 0.0], "objects": [1], 7: "a"}


def test_records_name_classes_and_keep_integer_keys():
    assert recordable({np.int64(3): dict, (1, 2): len}) == {
        3: "builtins.dict",
        "(1, 2)": "builtins.len",
    }
