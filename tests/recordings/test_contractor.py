"""Contractor recordings are read by VPT's rules, up to where they are damaged, and written."""

import json
from itertools import pairwise

import av
import numpy as np
import pytest

from rllib_minestudio.demonstrations.windows import WindowOptions, action_tokens, windows
from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.errors import RecordingError
from rllib_minestudio.foundation.names import KEYS
from rllib_minestudio.recordings import EpisodeWriter
from rllib_minestudio.recordings.contractor import (
    ContractorLayout,
    ContractorRecording,
    turning_of,
)
from rllib_minestudio.recordings.episodes import find_episodes, open_episode, survey
from rllib_minestudio.recordings.video import VideoOptions, read_video
from tests.recordings.contractor_files import frame, played, tick, write


def pressed(episode):
    """The pressed keys of each step."""
    return [{KEYS[i] for i in np.flatnonzero(row)} for row in episode.steps["keys"]]


STUCK = [tick(buttons=[0], new=[0])] + [tick(buttons=[0])] * 2


@pytest.mark.parametrize(
    ("ticks", "expected"),
    [
        ([tick("wasdq")], [{"forward", "left", "back", "right", "drop"}]),
        ([tick(["e", "space", "f3"], [1, 2])], [{"inventory", "jump", "use"}]),
        ([tick(["left.shift", "left.control", "4"])], [{"sneak", "sprint", "hotbar.4"}]),
        (STUCK, [set(), set(), set()]),
        ([*STUCK, tick(buttons=[0], new=[0])], [set(), set(), set(), {"attack"}]),
        ([*STUCK, tick(), tick(buttons=[0])], [set()] * 5),
        ([tick(buttons=[0]), tick(buttons=[0])], [{"attack"}, {"attack"}]),
        ([tick(buttons=[0, 1], new=[0, 1])], [{"attack", "use"}]),
        ([tick(), tick(hotbar=3), tick(hotbar=3)], [set(), {"hotbar.4"}, set()]),
        ([tick(hotbar=8), tick(["1"], hotbar=0)], [{"hotbar.9"}, {"hotbar.1"}]),
        ([tick(["escape"], isGuiOpen=True), tick(["escape"])], [{"inventory"}, set()]),
    ],
)
def test_keys_buttons_and_slots_become_keys(tmp_path, ticks, expected):
    assert pressed(open_episode(write(tmp_path, "NAME", ticks))) == expected


def test_the_mouse_turns_by_360_degrees_in_2400(tmp_path):
    moves = [(0, 0), (4, 0), (-20, 7), (2400, -2400), (0.5, 1)]
    episode = open_episode(write(tmp_path, "NAME", [tick(dx=dx, dy=dy) for dx, dy in moves]))
    expected = np.float32([(dy * 0.15, dx * 0.15) for dx, dy in moves])
    np.testing.assert_allclose(episode.steps["degrees"], expected, rtol=1e-6)
    mapper = ActionMapper()
    _, camera = action_tokens(episode)
    assert camera.tolist() == [mapper.from_env({"camera": turn})[1] for turn in expected]


@pytest.mark.parametrize("height", [72, 180])
def test_the_cursor_is_drawn_in_screens_scaled_by_the_height(tmp_path, height):
    size = (height * 16 // 9, height)
    places = [(100.0, 40.0), (1279.0, 700.0), (5000.0, 9.0)]
    ticks = [tick(isGuiOpen=True, x=x, y=y) for x, y in places] + [tick(x=100.0, y=40.0)]
    path = write(tmp_path, "NAME", ticks, size=size, crf=0)
    episode = open_episode(path)
    bare = list(read_video(path.with_suffix(".mp4")))
    for (x, y), with_cursor, without in zip(places, episode.frames(), bare, strict=False):
        left, top = int(x * height / 720), int(y * height / 720)
        rows, columns = np.nonzero((with_cursor != without).any(-1))
        assert len(rows) or left >= size[0]
        assert ((rows >= top) & (rows < top + 16)).all()
        assert ((columns >= left) & (columns < left + 16)).all()
        if left < size[0] - 16 and top < height - 16:
            assert with_cursor[top, left].tolist() == [0, 0, 0]  # the tip of the arrow
            assert (with_cursor[top + 5, left + 2] == 255).all()
    np.testing.assert_array_equal(next(episode.frames(start=3)), bare[3])
    small = next(episode.frames((32, 18)))
    assert small.shape == (18, 32, 3) and (height > 72 or (small != 0).any())


TEN = played(10)


def cut(told):
    return "".join(f"{line}\n" for line in told)[:-60]


@pytest.mark.parametrize(
    ("given", "length", "problem"),
    [
        ({}, 10, None),
        ({"frames": 10}, 10, None),
        ({"frames": 7}, 7, "3 lines have no frame"),
        ({"frames": 14}, 10, "4 frames have no line"),
        ({"lines": lambda told: "\n".join(told)}, 10, None),
        ({"lines": lambda told: "\r\n".join(told) + "\n\n\n"}, 10, None),
        ({"lines": cut}, 9, "line 10 is no tick"),
        (
            {"lines": lambda told: "\n".join([*told[:4], "{}", *told[5:]])},
            4,
            "mouse is missing",
        ),
        ({"lines": lambda told: "\n".join([*told[:4], *told[6:]])}, 8, "1 of its ticks do not"),
        ({"lines": lambda told: "\n".join(told[:6]) + "\0" * 3_000_000}, 6, "line 6|line 7"),
    ],
)
def test_what_lines_and_frames_have_in_common_is_read(tmp_path, given, length, problem):
    episode = open_episode(write(tmp_path, "NAME", TEN, **given))
    assert len(episode.steps["keys"]) == len(episode) == len(list(episode.frames()))
    assert len(episode) in (length, length - 1)
    problems = episode.problems()
    assert bool(problems) == (problem is not None), problems
    if problem is not None:
        assert any(part in told for part in problem.split("|") for told in problems), problems
    cut_up = list(windows(episode, WindowOptions(4, 2)))
    assert sum(window.weight.sum() for window in cut_up) == len(episode)


def remuxed(source, target):
    """Write a video again, with its index first."""
    with (
        av.open(str(source)) as old,
        av.open(str(target), "w", options={"movflags": "faststart"}) as new,
    ):
        stream = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                new.mux(packet)


def test_a_video_that_is_cut_off_is_read_up_to_there(tmp_path):
    path = write(tmp_path, "NAME", played(90))
    video = path.with_suffix(".mp4")
    remuxed(video, tmp_path / "new.mp4")
    whole = list(read_video(video))
    video.write_bytes((tmp_path / "new.mp4").read_bytes()[:-4000])
    (tmp_path / "new.mp4").unlink()
    episode = open_episode(path)
    assert 10 < len(episode) < 75
    assert "cut off" in episode.problems()[0]
    np.testing.assert_array_equal([*episode.frames()][-1], whole[len(episode) - 1])


def test_what_cannot_be_read_is_named_and_the_rest_is_found(tmp_path):
    folder = tmp_path / "6.9"
    for name in ("good", "no_video", "no_index", "no_film"):
        write(folder, name, TEN)
    (folder / "no_video.mp4").unlink()
    data = (folder / "no_index.mp4").read_bytes()
    (folder / "no_index.mp4").write_bytes(data[: len(data) // 2])  # as after a broken download
    (folder / "no_film.mp4").write_text("404: not found")
    found = survey([tmp_path])
    assert [path.name for path in found.lengths] == ["good.jsonl"]
    assert found.versions == {"6.9": 1} and found.formats == {"contractor": 10}
    assert {path.rpartition("/")[2] for path in found.broken} == {
        f"no_{what}.jsonl" for what in ("video", "index", "film")
    }
    assert "1 episode, 0.0 hours, 10 frames (contractor; versions 6.9)" in str(found)
    assert "3 recordings cannot be read and are left out: " in str(found)


def test_videos_may_be_in_the_folder_that_minestudios_converters_expect(tmp_path):
    lines = write(tmp_path / "mp4", "NAME", TEN)
    (tmp_path / "jsonl").mkdir()
    lines.rename(tmp_path / "jsonl" / "NAME.jsonl")
    (path,) = find_episodes(tmp_path)
    assert len(open_episode(path)) == 10


@pytest.mark.parametrize("crf", [0, 23])
def test_frames_are_reached_without_those_before(tmp_path, crf):
    path = write(tmp_path, "NAME", played(300), crf=crf, size=(32, 18))  # x264: keys 250 apart
    episode = open_episode(path)
    every = list(episode.frames())
    for start, stop in ((1, 4), (249, 252), (250, 251), (263, 270), (299, 300), (7, 7)):
        some = list(episode.frames(None, stop, start))
        np.testing.assert_array_equal(some, every[start:stop] or np.empty((0,)))


def test_how_the_view_follows_the_mouse_is_measured(tmp_path):
    ticks = played(100, seed=1)
    found = turning_of(ContractorRecording(write(tmp_path, "right", ticks)))
    assert found.lag == 0 and found.share == pytest.approx(1) and found.correlation > 0.99
    slow = [{**line, "yaw": line["yaw"] / 2} for line in ticks]
    assert turning_of(ContractorRecording(write(tmp_path, "slow", slow))).share == pytest.approx(
        0.5
    )
    late = [{**line, "mouse": before["mouse"]} for before, line in pairwise(ticks)]
    assert turning_of(ContractorRecording(write(tmp_path, "late", late))).lag == -1
    still = [{**line, "yaw": 0.0} for line in ticks]
    assert turning_of(ContractorRecording(write(tmp_path, "still", still))) is None


def test_what_is_written_comes_back(tmp_path):
    mapper, rng = ActionMapper(), np.random.default_rng(0)
    tokens = [(16, 60), *zip(rng.integers(8641, size=40), rng.integers(121, size=40), strict=True)]
    writer = EpisodeWriter(tmp_path / "NAME", ContractorLayout, VideoOptions(crf=0), mapper.keys_of)
    info = {"isGuiOpen": True, "player_pos": {"x": 1, "yaw": 2}, "mine_block": {"dirt": 3}}
    info["inventory"] = {0: {"type": "dirt", "quantity": 2}, 1: {"type": "none", "quantity": 0}}
    writer.begin(frame(0), info)
    for t, (buttons, camera) in enumerate(tokens):
        action = {"buttons": int(buttons), "camera": int(camera)}
        writer.add(action, 0.0, False, t == 40, frame=frame(t + 1), info=info)
    assert (
        writer.finish() == tmp_path / "NAME.jsonl" == ContractorLayout.place_of(tmp_path / "NAME")
    )
    episode = open_episode(tmp_path / "NAME.jsonl")
    expected = [mapper.from_env(mapper.to_env(int(b), int(c))) for b, c in tokens]
    assert action_tokens(episode).T.tolist() == [list(pair) for pair in expected]
    # Their cursor is in these frames already; none is drawn a second time.
    np.testing.assert_array_equal(list(episode.frames()), [frame(t) for t in range(41)])
    line = json.loads((tmp_path / "NAME.jsonl").read_text().splitlines()[3])
    assert line["inventory"] == [{"type": "dirt", "quantity": 2}]
    assert line["stats"] == {"minecraft.mine_block:minecraft.dirt": 3} and line["yaw"] == 2
    assert not episode.problems()
    with pytest.raises(RecordingError, match=r"has no NAME\.mp4 beside it"):
        (tmp_path / "NAME.mp4").unlink()
        open_episode(tmp_path / "NAME.jsonl")
