"""The page in a browser: played by keys and mouse, an agent watched, an episode scrubbed."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
import yaml
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.support.ui import Select

from rllib_minestudio.algorithms import MineStudioBCConfig
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.agents.scripted import make_agent
from rllib_minestudio.env.recorder import RECORDING, EpisodeRecorder, RecorderOptions
from rllib_minestudio.recordings import Recording, find_recordings
from rllib_minestudio.watch.catalogue import Catalogue
from rllib_minestudio.watch.request import WatchRequest
from tests.algorithms.toy_envs import tiny_model
from tests.browser import needs_browser, open_page
from tests.cli.tiny import TINY
from tests.processes import rllib
from tests.watch.conftest import served, task_options, wait_until, write_task

pytestmark = [needs_browser, pytest.mark.slow]

FIVE_MINUTES = 5 * 60 * 20
CALLBACKS = [
    {"Task": [{"name": "stroll", "text": "walk about"}]},
    {"JudgeReset": {"time_limit": FIVE_MINUTES}},
    # A scripted hand does not look where it goes: no ravine ends its episode.
    {"Commands": {"commands": ["/effect give @p resistance 1000 4"]}},
]

LOG_PICTURES = """
window.told = [];
document.addEventListener("picture", event => window.told.push(event.detail));
"""

CURVE_WIDTH = """
return document.querySelector("article .curve")?.getBoundingClientRect().width;
"""

LOG_MOUSE = """
window.moved = [0, 0];
document.addEventListener("mousemove", event => {
    if (document.pointerLockElement === null) return;
    window.moved[0] += event.movementY;
    window.moved[1] += event.movementX;
});
"""


def pictures(driver):
    """What was told with each picture since the log began."""
    return driver.execute_script("return window.told")


CHOOSE = """
const [at, title] = arguments, select = document.getElementById(at);
const option = [...select.options].find(one => one.textContent.includes(title));
if (option === undefined) return null;
if (select.value !== option.value) {  // as a browser, which tells of changes only
    select.value = option.value;
    select.dispatchEvent(new Event("change", {bubbles: true}));
}
return option.textContent;
"""


def choose(driver, title, at="first"):
    """Choose what is viewed, and wait until it is there.

    In one script: the list may be drawn anew between two commands of the driver.
    """
    driver.execute_script(LOG_PICTURES)
    text = wait_until(lambda: driver.execute_script(CHOOSE, at, title)).strip()
    count = 1 + (at == "second")
    return wait_until(
        lambda: (
            (told := pictures(driver))
            and len(told[-1]["views"]) == count
            and text.startswith(told[-1]["views"][-1]["title"])
            and told[-1]
        )
    )


def find_paths(folder):
    """The paths of recorded episodes."""
    return [recording.path for recording in find_recordings(folder)]


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """The server of a task with recorded episodes, and a browser with the page."""
    folder = tmp_path_factory.mktemp("watched")
    source = write_task(folder, callbacks=CALLBACKS)
    out = folder / "played"
    catalogue = Catalogue(WatchRequest(source=str(source), out=str(out)))
    with served(catalogue) as server:
        driver = open_page(server.address)
        yield driver, folder
        driver.quit()


def test_ten_seconds_played_are_found_in_the_recording_tick_for_tick(watched):
    driver, folder = watched
    choose(driver, "Play meadow yourself")
    wait_until(lambda: driver.find_elements("css selector", ".prompt"))[0].click()
    wait_until(lambda: pictures(driver)[-1]["runs"])
    driver.execute_script(LOG_MOUSE)
    keys = {"w": "forward", " ": "jump", "d": "right", Keys.SHIFT: "sneak", "3": "hotbar.3"}
    used, began = set(), time.monotonic()
    while time.monotonic() - began < 10:
        for key in keys:
            ActionChains(driver).key_down(key).pause(0.3).key_up(key).perform()
            used.add(keys[key])
        mouse = ActionBuilder(driver)
        mouse.pointer_action.move_by(40, 10).pointer_down().pause(0.2).pointer_up()
        mouse.perform()
    driver.execute_script("document.exitPointerLock()")
    wait_until(lambda: not pictures(driver)[-1]["runs"])
    driver.find_element("css selector", ".keep input").clear()
    driver.find_element("css selector", ".keep input").send_keys("Ann")
    driver.find_element("css selector", ".do-keep").click()
    wait_until(lambda: pictures(driver)[-1]["views"][0]["kept"])
    (found,) = find_recordings(folder / "played")
    assert found.meta["policy"]["agent"] == "Ann" and len(found) > 180
    names, rows = found.meta["keys"], found.steps["keys"]
    shown = {view["step"]: view for told in pictures(driver) for view in told["views"]}
    assert len(shown) > 0.9 * len(found)  # nearly every tick was on the screen
    for step, view in shown.items():
        if step:
            pressed = {n for n, down in zip(names, rows[step - 1], strict=True) if down}
            assert (step, set(view["keys"])) == (step, pressed)
            assert np.allclose(view["camera"], found.steps["degrees"][step - 1], atol=1e-3)
    held = {name for name, column in zip(names, rows.T, strict=True) if column.any()}
    assert held == {*used, "attack"}
    moved = np.array(driver.execute_script("return window.moved"))
    assert np.abs(moved).sum() > 20  # pixels
    assert np.allclose(found.steps["degrees"].sum(0), 0.15 * moved, atol=0.01)
    assert driver.get_log("browser") == []


def test_an_agent_is_watched_and_compared_at_any_width(watched):
    driver, _ = watched
    told = choose(driver, "package:hunter_nano")
    assert len(told["views"][0]["likeliest"]) == 8
    assert len(driver.find_elements("css selector", ".likeliest li")) == 8
    choose(driver, "perfect-hunter", at="second")
    driver.execute_script(LOG_PICTURES)
    seen = wait_until(lambda: (t := pictures(driver)) and len(t) > 5 and t)
    assert all(one["step"] == other["step"] for one, other in (t["views"] for t in seen))
    assert len({view["seed"] for t in seen for view in t["views"]}) == 1
    for width in (400, 1400):
        driver.set_window_size(width, 900)
        needed = driver.execute_script("return document.documentElement.scrollWidth")
        assert needed <= driver.execute_script("return window.innerWidth")
    Select(driver.find_element("id", "second")).select_by_visible_text("nothing")


def test_an_episode_is_scrubbed(watched):
    driver, folder = watched
    env = MineStudioEnv(obs_size=(64, 64), callbacks=[{"JudgeReset": {"time_limit": 60}}])
    env = EpisodeRecorder(env, RecorderOptions(str(folder / "played"), snapshot_interval=40))
    env.reset(seed=1, options={RECORDING: {"name": "recorded"}})
    agent = make_agent("random", seed=0)
    while not env.step(agent.act(env))[3]:
        pass
    env.close()
    driver.find_element("id", "refresh").click()
    told = choose(driver, "recorded")
    assert told["views"][0]["length"] == 60
    scrub = "const s = document.getElementById('scrub'); s.value = 41;"
    driver.execute_script(scrub + "s.dispatchEvent(new Event('input'))")
    wait_until(lambda: pictures(driver)[-1]["views"][0]["step"] == 41)
    recording = next(r for r in find_recordings(folder) if r.path.name == "recorded")
    infos = list(recording.infos())
    driver.set_window_size(400, 900)
    needed = driver.execute_script("return document.documentElement.scrollWidth")
    assert needed <= driver.execute_script("return window.innerWidth")
    driver.set_window_size(1400, 900)
    assert pictures(driver)[-1]["views"][0]["info"] == json.loads(json.dumps(infos[41]))
    play_on = driver.find_element("css selector", ".play-on")
    assert play_on.text == "Play on from step 40"
    play_on.click()
    begun = wait_until(lambda: (v := pictures(driver)[-1]["views"][0])["kind"] == "play" and v)
    assert begun["is_saved_game"] and begun["step"] == 0
    wait_until(lambda: not driver.find_element("id", "another").is_displayed())
    driver.find_element("id", "refresh").click()
    driver.find_element("id", "step").click()
    wait_until(lambda: (v := pictures(driver)[-1]["views"][0])["kind"] == "play" and v["step"])
    assert driver.get_log("browser") == []


SCRIPTED_HAND = """
const keys = ["KeyW", "KeyA", "KeyD", "Space", "ShiftLeft", "Digit3", "KeyE"];
let turn = 0;
window.hand = setInterval(() => {
    turn += 1;
    const type = turn % 2 ? "keydown" : "keyup", code = keys[(turn >> 1) % keys.length];
    document.dispatchEvent(new KeyboardEvent(type, {code}));
    document.dispatchEvent(new MouseEvent("mousemove", {movementX: turn % 40 - 20, movementY: 1}));
}, 30);
"""


def test_five_minutes_by_a_scripted_hand_are_cloned(watched, local_ray):
    driver, folder = watched
    choose(driver, "Play meadow yourself")
    Select(driver.find_element("id", "speed")).select_by_value("16")
    wait_until(lambda: driver.find_elements("css selector", ".prompt"))[0].click()
    driver.execute_script(SCRIPTED_HAND)
    wait_until(lambda: pictures(driver)[-1]["views"][0]["ended"], 300)
    driver.execute_script("clearInterval(window.hand)")
    before = set(find_paths(folder))
    driver.find_element("css selector", ".do-keep").click()
    (found,) = wait_until(lambda: set(find_paths(folder)) - before)
    assert len(Recording(found)) == FIVE_MINUTES
    config = MineStudioBCConfig().offline_data(input_=str(found), dataset_num_iters_per_learner=8)
    config.environment(MineStudioEnv, env_config=task_options(callbacks=CALLBACKS))
    model = tiny_model(img_shape=[32, 32, 3])
    config.training(model=model, lr=3e-3, window_length=32, windows_per_batch=8)
    config.training(validation_fraction=0.0, shuffle_among=64)
    algorithm = config.debugging(seed=0).build_algo()
    losses = [algorithm.train()["learners"]["default_policy"]["loss"] for _ in range(3)]
    algorithm.stop()
    assert losses[-1] < 0.9 * losses[0]


def test_a_run_is_watched_while_it_trains(tmp_path):
    experiment = {**TINY["tiny"], "stop": {"training_iteration": 400}}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump({"tiny": experiment}))
    run = rllib(tmp_path, "train", "file", "tiny.yaml")
    try:
        results = tmp_path / "results"
        wait_until(lambda: list(results.rglob("record.yaml")), 60)
        catalogue = Catalogue(WatchRequest(source=str(results), out=str(tmp_path / "played")))
        with served(catalogue) as server:
            driver = open_page(server.address)
            try:
                told = choose(driver, "Newest checkpoint")
                first = told["views"][0]["agent"]
                wait_until(lambda: driver.execute_script(CURVE_WIDTH))
                Select(driver.find_element("id", "speed")).select_by_value("4")
                wait_until(lambda: pictures(driver)[-1]["views"][0]["agent"] != first)
                assert driver.get_log("browser") == []
            finally:
                driver.quit()
    finally:
        run.kill()
        run.wait()
