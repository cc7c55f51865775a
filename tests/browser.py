"""A headless browser that looks at pages of ours."""

import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

needs_browser = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no browser: apt-get install chromium chromium-driver"
)

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",  # small in containers
)


def open_page(page):
    """Open a file or an address; the caller quits the driver.

    Whatever the page complains about is in its log.
    """
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(60)
    driver.get(page if isinstance(page, str) else page.as_uri())
    # On a busy machine, `get` has returned while the page was still being read.
    WebDriverWait(driver, 60).until(
        lambda driver: driver.execute_script("return document.readyState") == "complete"
    )
    return driver
