"""The strip beneath a video's frames."""

import numpy as np
import pytest

from rllib_minestudio.env.actions import KEYS
from rllib_minestudio.recordings import video
from rllib_minestudio.recordings.video import LEAST_WIDTH, with_key_strip

FRAME = np.random.default_rng(0).integers(0, 256, (36, LEAST_WIDTH, 3), dtype=np.uint8)


NUMBERS = {"step": 1187, "reward": 0.001, "return": 12.3456, "value": -2.41, "KL": 0.03}


def lit(action):
    """The columns and rows of the strip in which something is in the colour of pressed keys."""
    strip = with_key_strip(FRAME, action, {})[FRAME.shape[0] :]
    rows, columns = np.nonzero((strip == video._PRESSED).all(axis=2))
    return rows, columns


def test_the_frame_stays_whole_above_the_strip():
    shown = with_key_strip(FRAME, {}, NUMBERS)
    assert shown.shape == (36 + 44, LEAST_WIDTH, 3) and shown.dtype == np.uint8
    np.testing.assert_array_equal(shown[:36], FRAME)


@pytest.mark.parametrize(("height", "width"), [(36, 64), (35, 129), (33, LEAST_WIDTH + 1)])
def test_a_frame_too_narrow_or_odd_is_enlarged_by_a_whole_factor(height, width):
    frame = np.resize(FRAME, (height, width, 3))
    shown = with_key_strip(frame, {}, {})
    factor = shown.shape[1] // width
    assert shown.shape[1] == factor * width >= LEAST_WIDTH
    assert shown.shape[0] % 2 == shown.shape[1] % 2 == 0  # as H.264 needs
    np.testing.assert_array_equal(shown[: height * factor : factor, ::factor], frame)


def test_a_wide_strip_is_drawn_to_scale():
    narrow, wide = (
        with_key_strip(np.zeros((36, width, 3), np.uint8), {"forward": 1}, {})[36:]
        for width in (LEAST_WIDTH, 2 * LEAST_WIDTH)
    )
    assert wide.shape == (88, 2 * LEAST_WIDTH, 3)
    assert np.abs(wide[::2, ::2].astype(float) - narrow).mean() < 6


@pytest.mark.parametrize("key", KEYS)
def test_every_key_lights_its_own_place_and_nothing_else_does(key):
    assert lit({})[0].size == 0
    rows, columns = lit({key: 1})
    _, left, top, width = video._KEYS["hotbar" if key.startswith("hotbar") else key]
    assert left <= columns.min() and columns.max() <= left + width
    assert top <= rows.min() and rows.max() <= top + video._KEY_HEIGHT
    others = lit({"camera": (0.0, 0.0), **dict.fromkeys(set(KEYS) - {key}, 0)})
    assert others[0].size == 0


def test_the_dial_points_where_the_camera_turns():
    left, top, right, bottom = video._DIAL
    rows, columns = lit({"camera": (-10.0, 0.0)})  # up
    assert rows.min() < (top + bottom) / 2 - 10 and rows.max() <= (top + bottom) / 2 + 3
    rows, columns = lit({"camera": (0.0, 500.0)})  # far to the right: it stays within the dial
    assert columns.max() > (left + right) / 2 + 10 and columns.max() <= right
    assert columns.min() >= (left + right) / 2 - 3


def test_the_numbers_show():
    without = with_key_strip(FRAME, {}, {})
    rows, columns = np.nonzero((with_key_strip(FRAME, {}, NUMBERS) != without).any(axis=2))
    (left, first_right), (second_left, right) = video._COLUMNS
    assert left - 1 <= columns.min() and columns.max() <= right
    assert not np.isin(columns, range(first_right + 1, second_left)).any()
    assert np.ptp(rows) > 2 * video._LINE  # three lines
