"""Windows side by side: each lane plays one episode after the other, window by window."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rllib_minestudio.demonstrations import side_by_side, whole_episodes

LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=12)


def episodes_of(lengths):
    """Episodes whose windows are called (episode, window)."""
    return [[(i, j) for j in range(length)] for i, length in enumerate(lengths)]


@given(LENGTHS, st.randoms(use_true_random=False))
def test_windows_that_arrive_in_any_order_are_put_together(lengths, random):
    arriving = [
        (i, j, j == len(episode) - 1, (i, j))
        for i, episode in enumerate(episodes_of(lengths))
        for j in range(len(episode))
    ]
    random.shuffle(arriving)
    assert sorted(whole_episodes(arriving)) == episodes_of(lengths)


@given(LENGTHS, st.integers(1, 5), st.none() | st.integers(0, 9))
def test_each_window_continues_the_one_before_it(lengths, lanes, seed):
    random = None if seed is None else np.random.default_rng(seed)
    batches = list(side_by_side(episodes_of(lengths), lanes, random))
    seen = [window for batch in batches for window in batch if window is not None]
    assert len(set(seen)) == len(seen) and all(len(batch) == lanes for batch in batches)
    ends = {(i, length - 1) for i, length in enumerate(lengths)}
    assert ends <= set(seen)
    if random is None:
        assert sorted(seen) == sorted(itertools.chain(*episodes_of(lengths)))
    for lane in zip(*batches, strict=True):
        for before, after in itertools.pairwise(lane):
            if after is not None and after[1]:
                assert before == (after[0], after[1] - 1)
            else:  # an episode is left at its end only
                assert before is None or before in ends


def test_lanes_begin_anywhere_in_their_first_episode():
    batches = side_by_side(episodes_of([100] * 8), 8, np.random.default_rng(0))
    begins = [window[1] for window in next(batches)]
    assert len(set(begins)) > 4 and max(begins) > 50 > min(begins)
