"""The page of a benchmark as a browser shows it."""

import pytest

from rllib_minestudio.benchmark.report import write_page
from tests.benchmark.fabricated import FRAMES, SIZE, with_everything
from tests.browser import needs_browser, open_page

pytestmark = needs_browser

PLAY = """
const [number, done] = arguments;
const video = document.querySelectorAll("video")[number];
video.addEventListener("timeupdate", () => { if (video.currentTime > 0.2) done(true); });
video.play().catch(error => done(String(error)));
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    write_page(with_everything(folder), folder / "benchmark.html")
    driver = open_page(folder / "benchmark.html")
    yield driver
    driver.quit()


def shown_tasks(browser):
    tasks = browser.find_elements("css selector", ".task")
    return [
        task.find_element("css selector", ".name").text for task in tasks if task.is_displayed()
    ]


def test_nothing_complains_and_no_name_became_code(browser):
    assert browser.get_log("browser") == []
    assert browser.title == "tiny: some_agent"
    assert len(shown_tasks(browser)) == 5


def test_bars_are_as_long_as_their_rates(browser):
    for task in browser.find_elements("css selector", ".task.played"):
        bar, progress = task.find_elements("css selector", "summary .bar")
        name = task.find_element("css selector", ".name").text
        rate = {"dig": 0.25, "fell": 1.0, "tree": 0.0}[name]
        fill = bar.find_element("css selector", ".fill").rect["width"]
        assert fill == pytest.approx(rate * bar.rect["width"], abs=1)
        fill = progress.find_element("css selector", ".fill").rect["width"]
        assert fill == pytest.approx((rate + 0.25 * (1 - rate)) * bar.rect["width"], abs=1)
        interval = bar.find_element("css selector", ".interval").rect
        assert interval["x"] >= bar.rect["x"] - 1 and interval["width"] > 0.1 * bar.rect["width"]


def test_categories_and_marks_are_filtered(browser):
    def click(css):
        browser.find_element("css selector", css).click()

    click(".filters button[data-category=mine]")
    assert shown_tasks(browser) == ["dig", "fell"]
    click(".filters button[data-category=travel]")
    assert shown_tasks(browser) == ["swim"]
    click("#marked")
    assert shown_tasks(browser) == []
    click(".filters button[data-category='']")
    assert len(shown_tasks(browser)) == 4
    click("#marked")
    assert len(shown_tasks(browser)) == 5


def test_a_task_opens_and_its_videos_play(browser):
    videos = browser.find_elements("tag name", "video")
    assert len(videos) == 2 and not any(video.is_displayed() for video in videos)
    assert {video.get_property("readyState") for video in videos} == {0}  # nothing is loaded yet
    browser.find_element("css selector", ".task.played summary").click()  # craft comes first
    assert not any(video.is_displayed() for video in videos)
    browser.find_elements("css selector", "[data-category=mine] .task summary")[0].click()
    assert all(video.is_displayed() for video in videos)
    assert browser.execute_async_script(PLAY, 0) is True
    assert (videos[0].get_property("videoWidth"), videos[0].get_property("videoHeight")) == SIZE
    assert videos[0].get_property("duration") == pytest.approx(FRAMES / 20)
    captions = [caption.text for caption in browser.find_elements("tag name", "figcaption")]
    assert captions == ["one success", "one failure"]


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_fits_the_window(browser, width):
    browser.set_window_size(width, 900)
    needed = browser.execute_script("return document.documentElement.scrollWidth")
    assert needed <= browser.execute_script("return window.innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_the_background(browser, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    colours = browser.execute_script(
        """
        const canvas = document.createElement("canvas").getContext("2d");
        const page = document.body.appendChild(document.createElement("i"));
        page.style.color = "Canvas";  // of the scheme, which a canvas does not know
        const bright = colour => {
            canvas.fillStyle = colour;
            canvas.fillRect(0, 0, 1, 1);
            return canvas.getImageData(0, 0, 1, 1).data.slice(0, 3).reduce((a, b) => a + b) / 3;
        };
        const inside = document.querySelectorAll("h2.no, .marked > summary");
        return [page, document.body, ...inside].map(part => bright(getComputedStyle(part).color));
        """
    )
    background, *texts = colours
    assert (background > 200) == (scheme == "light") and len(texts) == 3
    assert all(abs(text - background) > 90 for text in texts)
