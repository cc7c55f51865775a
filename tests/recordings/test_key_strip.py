"""The strip beneath a film's frames."""

import numpy as np
import pytest

from rllib_minestudio.env.actions import KEYS
from rllib_minestudio.recordings import key_strip
from rllib_minestudio.recordings.key_strip import HEIGHT, LEAST_WIDTH, with_key_strip

FRAME = np.random.default_rng(0).integers(0, 256, (36, LEAST_WIDTH, 3), dtype=np.uint8)


def lit(action):
    """The columns and rows of the strip in which something is in the colour of pressed keys."""
    strip = with_key_strip(FRAME, action, [])[FRAME.shape[0] :]
    rows, columns = np.nonzero((strip == key_strip._PRESSED).all(axis=2))
    return rows, columns


def test_the_frame_stays_whole_above_the_strip():
    shown = with_key_strip(FRAME, {}, ["return 3", "value 2.41"])
    assert shown.shape == (36 + HEIGHT, LEAST_WIDTH, 3) and shown.dtype == np.uint8
    np.testing.assert_array_equal(shown[:36], FRAME)


def test_a_narrow_frame_is_enlarged_by_a_whole_factor():
    shown = with_key_strip(FRAME[:, :64], {}, [])
    factor = shown.shape[1] // 64
    assert shown.shape == (36 * factor + HEIGHT, 64 * factor, 3) and shown.shape[1] >= LEAST_WIDTH
    np.testing.assert_array_equal(shown[: 36 * factor : factor, ::factor], FRAME[:, :64])


@pytest.mark.parametrize("key", KEYS)
def test_every_key_lights_its_own_place_and_nothing_else_does(key):
    assert lit({})[0].size == 0
    rows, columns = lit({key: 1})
    _, left, top, width = key_strip._KEYS["hotbar" if key.startswith("hotbar") else key]
    assert left <= columns.min() and columns.max() <= left + width
    assert top <= rows.min() and rows.max() <= top + key_strip._KEY_HEIGHT
    others = lit({"camera": (0.0, 0.0), **dict.fromkeys(set(KEYS) - {key}, 0)})
    assert others[0].size == 0


def test_the_dial_points_where_the_camera_turns():
    left, top, right, bottom = key_strip._DIAL
    rows, columns = lit({"camera": (-10.0, 0.0)})  # up
    assert rows.min() < (top + bottom) / 2 - 10 and rows.max() <= (top + bottom) / 2 + 3
    rows, columns = lit({"camera": (0.0, 500.0)})  # far to the right: it stays within the dial
    assert columns.max() > (left + right) / 2 + 10 and columns.max() <= right
    assert columns.min() >= (left + right) / 2 - 3


def test_the_numbers_show():
    with_texts = with_key_strip(FRAME, {}, ["return 3", "value 2.41"])
    without = with_key_strip(FRAME, {}, [])
    changed = np.nonzero((with_texts != without).any(axis=2))
    assert changed[1].min() >= key_strip._TEXT_LEFT and np.ptp(changed[0]) > 24  # two lines
