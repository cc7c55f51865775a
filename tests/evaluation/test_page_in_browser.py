"""The page as a browser shows it: its plots, and its videos frame by frame."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rllib_minestudio import MineStudioEnv
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner
from rllib_minestudio.evaluation.filters import parse_filter
from rllib_minestudio.evaluation.report import write_page
from rllib_minestudio.evaluation.request import EpisodeSpec, PlaySettings
from rllib_minestudio.evaluation.summary import Summary, compare
from rllib_minestudio.recordings import Recording
from tests.browser import needs_browser, open_page

pytestmark = needs_browser

EPISODES, STEPS, SIZE = 3, 30, (128, 72)

SEEK_AND_READ = """
const [number, time, done] = arguments;
const video = document.querySelectorAll("video")[number];
const read = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
    const picture = canvas.getContext("2d");
    picture.drawImage(video, 0, 0);
    done(Array.from(picture.getImageData(0, 0, canvas.width, canvas.height).data));
};
// On a busy machine the picture comes some time after the event: wait until it has been presented.
let isPresented = false, isThere = false;
const look = () => { if (isPresented && isThere) read(); };
video.addEventListener("seeked", () => { isThere = true; look(); }, {once: true});
const present = (_, frame) => {
    isPresented = Math.abs(frame.mediaTime + 0.5 / 20 - time) < 0.5 / 20;
    if (isPresented) look(); else video.requestVideoFrameCallback(present);
};
video.requestVideoFrameCallback(present);
video.currentTime = time;
"""

PLAY = """
const [number, done] = arguments;
const video = document.querySelectorAll("video")[number];
video.addEventListener("timeupdate", () => { if (video.currentTime > 0.3) done(true); });
video.play().catch(error => done(String(error)));
"""


class Pays:
    """A callback that rewards the tenth and the twentieth step, in a second task more."""

    def after_reset(self, sim, obs, info):
        self.step = 0
        return obs, info

    def after_step(self, sim, obs, reward, terminated, truncated, info):
        self.step += 1
        return obs, reward + (self.step in (10, 20)), terminated, truncated, info


ORDER = """
const select = document.getElementById("order");
select.value = arguments[0];
select.dispatchEvent(new Event("change"));
return [...document.querySelectorAll("figure")].map(figure => -figure.dataset.index);
"""


@pytest.fixture(scope="module")
def evaluated(make_config, tmp_path_factory):
    """Recorded episodes of the embedded engine, their page, and the frames that were shown."""
    env_config = {
        "obs_size": [16, 16],
        "render_size": list(SIZE),
        "num_empty_frames": 1,
        "callbacks": [{f"{Pays.__module__}.Pays": {}}, {"JudgeReset": {"time_limit": STEPS}}],
    }
    config = make_config(MineStudioEnv, **env_config)
    config.validate()
    runner = EvaluationEnvRunner(config=config, worker_index=0, num_workers=0)
    folder = tmp_path_factory.mktemp("evaluated")
    recorder = {"folder": str(folder / "episodes"), "source": "pov"}
    lossless = {**recorder, "folder": str(folder / "lossless"), "crf": 0}
    try:
        played, exact = (
            sorted(
                runner.play(
                    [EpisodeSpec(i) for i in range(EPISODES)], PlaySettings(recorder=options)
                ),
                key=lambda episode: episode.index,
            )
            for options in (recorder, lossless)
        )
    finally:
        runner.stop()
    played[-1] = replace(played[-1], recording=None, undiscounted_return=5.0)
    labelled = list(parse_filter("x>0").filter(played))
    summary = Summary.of(labelled, seed=0, filter="x>0", policy={"name": "random"})
    write_page(summary, folder / "summary.html", (summary, compare(summary, summary)))
    shown = [list(Recording(episode.recording).frames()) for episode in exact]
    return folder / "summary.html", shown


@pytest.fixture(scope="module")
def browser(evaluated):
    driver = open_page(evaluated[0])
    yield driver
    driver.quit()


def test_everything_is_there_and_nothing_complains(browser):
    plots = browser.find_elements("css selector", ".plots svg")
    # Of returns and of pairs: one task and equal lengths need no plot.
    assert len(plots) == 2 and all(plot.is_displayed() for plot in plots)
    assert len(browser.find_elements("css selector", "figure")) == EPISODES
    assert len(browser.find_elements("tag name", "video")) == EPISODES - 1
    assert "not recorded" in browser.page_source and "3 paired episodes" in browser.page_source
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_fits_the_window(browser, width):
    browser.set_window_size(width, 900)
    needed = browser.execute_script("return document.documentElement.scrollWidth")
    assert needed <= browser.execute_script("return window.innerWidth")


def test_a_video_plays(browser):
    assert browser.execute_async_script(PLAY, 0) is True
    video = browser.find_elements("tag name", "video")[0]
    assert video.get_property("readyState") >= 2
    assert (video.get_property("videoWidth"), video.get_property("videoHeight")) == SIZE
    assert video.get_property("duration") == pytest.approx((STEPS + 1) / 20)
    assert video.get_property("error") is None
    browser.execute_script("arguments[0].pause()", video)


def test_episodes_are_sorted(browser):
    assert browser.execute_script(ORDER, "return") == [2, 0, 1]
    assert browser.execute_script(ORDER, "index") == [0, 1, 2]


def test_a_moment_of_reward_is_jumped_to(browser):
    first = browser.find_element("css selector", "figure")
    moments = first.find_elements("css selector", ".moments button")
    assert [moment.text for moment in moments] == ["0:00 +1", "0:01 +1"]
    video = first.find_element("tag name", "video")
    browser.execute_script("arguments[0].pause(); arguments[0].currentTime = 1.4", video)
    moments[1].click()
    moved = "return arguments[0].currentTime < 0.9 && !arguments[0].paused"
    assert browser.execute_script(moved, video)
    browser.execute_script("arguments[0].pause()", video)


def test_each_frame_is_the_one_that_was_shown_in_its_colours(browser, evaluated):
    _, shown = evaluated
    for number, t in ((0, 0), (0, 7), (0, STEPS), (1, 19)):
        time = (t + 0.5) / 20  # the middle of the frame
        pixels = browser.execute_async_script(SEEK_AND_READ, number, time)
        seen = np.array(pixels, np.float64).reshape(SIZE[1], SIZE[0], 4)[..., :3]
        errors = [np.mean((seen - frame) ** 2) for frame in shown[number]]
        assert errors[t] == min(errors)
        assert 10 * math.log10(255**2 / errors[t]) > 30
        means = seen.mean((0, 1)) - shown[number][t].mean((0, 1))
        assert np.abs(means).max() < 2
