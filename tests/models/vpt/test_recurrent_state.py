"""The mask: who may attend to whom, and what stays in memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_minestudio.models.vpt.attention import visibility


def _bools(text: str) -> torch.Tensor:
    """Rows of 1 and other characters (0 or .) as a boolean tensor; blanks and | are decoration."""
    rows = [line.replace(" ", "").replace("|", "") for line in text.strip().splitlines()]
    return torch.tensor([[character == "1" for character in row] for row in rows])


def test_the_picture_in_the_docstring():
    visible, mask = visibility(torch.tensor([[False, False, True, False]]), torch.ones(1, 3).bool())
    expected = _bools(
        """
        . 1 1 | 1 . . .
        . . 1 | 1 1 . .
        . . . | . . 1 .
        . . . | . . 1 1
        """
    )
    assert torch.equal(visible[0], expected)
    assert torch.equal(mask[0], torch.tensor([False, True, True]))


def _slow_visibility(first: list[bool], memory: list[bool]) -> tuple[list[list[bool]], list[bool]]:
    """The definition, frame by frame: a list of the entries of the running episode."""
    size = len(memory)
    running = [entry for entry in range(size) if memory[entry]]
    rows = []
    for t, is_first in enumerate(first):
        running = [*([] if is_first else running), size + t]
        rows.append([k in running[-size:] and k > t for k in range(size + len(first))])
    last = range(len(first), len(first) + size)
    return rows, [entry in running for entry in last]


@settings(max_examples=60, deadline=None)
@given(
    first=st.lists(st.booleans(), min_size=1, max_size=9),
    filled=st.integers(0, 5),
    size=st.integers(1, 5),
)
def test_agrees_with_the_definition(first, filled, size):
    # A state's mask is always filled from the newest slot backwards.
    memory = [slot >= size - filled for slot in range(size)]
    visible, mask = visibility(torch.tensor([first]), torch.tensor([memory]))
    expected_visible, expected_mask = _slow_visibility(first, memory)
    assert visible[0].tolist() == expected_visible
    assert mask[0].tolist() == expected_mask


@pytest.mark.parametrize("time", [1, 3, 8])
def test_every_frame_sees_itself(time):
    visible, _ = visibility(torch.ones(1, time).bool(), torch.zeros(1, 3).bool())
    assert torch.equal(visible[0, :, 3:], torch.eye(time).bool())
