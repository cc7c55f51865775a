"""How fast the page of `rllib watch` is, and what it costs.

    python benchmarks/watch.py [TASK] [--seconds 60]

In headless chromium, over loopback, with the task played at its `render_size`:

- from a key's event in the page to the first picture on its canvas that was drawn with it, 100
  times at random moments of the clock;
- steps per second over a minute;
- processor time of the server: while one plays, while an agent is watched at ten pictures a second,
  and while no tab is open.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.support.ui import Select

COW = Path(__file__).parents[1] / "tuned_examples" / "cow.yaml"
PRESSES = 100
AGENT = "package:hunter_nano"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")

PRESS = """
const done = arguments[0];
const told = event => {
    if (!event.detail.views[0].keys.includes("forward")) return;
    document.removeEventListener("picture", told);
    const took = performance.now() - began;
    document.dispatchEvent(new KeyboardEvent("keyup", {code: "KeyW"}));
    done(took);
};
document.addEventListener("picture", told);
const began = performance.now();
document.dispatchEvent(new KeyboardEvent("keydown", {code: "KeyW"}));
"""
STEP = "return window.told?.views[0].step"
LOG = 'document.addEventListener("picture", event => { window.told = event.detail; });'


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("task", nargs="?", default=str(COW))
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    # An episode that lasts for the whole measurement.
    longer = "env_config.callbacks.5.JudgeReset.time_limit=100000"
    command = (sys.executable, "-m", "rllib_minestudio.cli.main", "watch", arguments.task)
    given = ("--set", longer) if arguments.task == str(COW) else ()
    server = subprocess.Popen([*command, *given], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = next(line for line in server.stdout if line.startswith("watch: ")).split()[1]
    try:
        idle = cores(server, 10.0)
        driver = opened(address)
        try:
            play(driver, server, arguments.seconds)
            watch(driver, server, arguments.seconds / 2)
        finally:
            driver.quit()
        time.sleep(2.0)
        print(f"no tab open: {idle:.3f} cores before, {cores(server, 10.0):.3f} after")
    finally:
        server.terminate()
        server.wait()


def opened(address: str) -> webdriver.Chrome:
    """Open the page."""
    options = webdriver.ChromeOptions()
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_window_size(1400, 1000)
    driver.get(address)
    driver.execute_script(LOG)
    wait(driver, "return window.told?.views[0].kind === 'play'")
    return driver


def play(driver: webdriver.Chrome, server: subprocess.Popen[str], seconds: float) -> None:
    """Measure while a person plays."""
    driver.find_element("css selector", ".prompt").click()
    wait(driver, "return window.told.runs")
    random = np.random.default_rng(0)
    took = []
    for _ in range(PRESSES):
        time.sleep(random.uniform(0.15, 0.25))  # the key is up again, at any moment of the clock
        took.append(driver.execute_async_script(PRESS))
    median, late = np.percentile(took, [50, 95])
    print(f"key to picture: {median:.0f} ms (median), {late:.0f} ms (95th of {PRESSES})")
    before, began = driver.execute_script(STEP), time.monotonic()
    used = cores(server, seconds)
    steps, lasted = driver.execute_script(STEP) - before, time.monotonic() - began
    print(f"while one plays: {steps / lasted:.2f} steps/s over {lasted:.0f} s, {used:.2f} cores")
    driver.execute_script("document.exitPointerLock()")


def watch(driver: webdriver.Chrome, server: subprocess.Popen[str], seconds: float) -> None:
    """Measure while an agent is watched, at half the game's speed."""
    Select(driver.find_element("id", "first")).select_by_visible_text(AGENT)
    wait(driver, "return window.told.views[0].kind === 'live'")
    Select(driver.find_element("id", "speed")).select_by_value("0.5")
    wait(driver, "return window.told.speed === 0.5")
    print(f"{AGENT} at 10 pictures a second: {cores(server, seconds):.2f} cores")


def wait(driver: webdriver.Chrome, script: str) -> None:
    """Wait for a condition of the page."""
    ends = time.monotonic() + 60
    while not driver.execute_script(script):
        if time.monotonic() > ends:
            raise TimeoutError(driver.find_element("tag name", "body").text)
        time.sleep(0.02)


def cores(process: subprocess.Popen[str], seconds: float) -> float:
    """Processor time that a process takes per second of the next seconds."""

    def used() -> float:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before, began = used(), time.monotonic()
    time.sleep(seconds)
    return (used() - before) / (time.monotonic() - began)


if __name__ == "__main__":
    main()
