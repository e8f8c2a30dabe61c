"""Headless Chromium for tests of pages; needs Selenium, Chromium and its driver."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest


def chromium(width: int, height: int) -> Iterator[Any]:
    """A browser with a page of this size and a log of what it loads; a fixture's body.

    Skips the test where one of the programs is missing.
    """
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs Selenium")
    from selenium.webdriver.chrome.service import Service

    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        pytest.skip("needs Chromium and its driver")
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    driver = webdriver.Chrome(options, Service(programs[1]))
    resize(driver, width, height)
    yield driver
    driver.quit()


def resize(driver: Any, width: int, height: int) -> None:
    """Sets the width and height of the page."""
    # A window cannot be as narrow as a phone, but the page can.
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1}
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", metrics | {"mobile": width < 500}
    )


def requests_of(driver: Any) -> list[str]:
    """Requests of the page since the last call."""
    messages = [
        json.loads(entry["message"])["message"]
        for entry in driver.get_log("performance")
    ]
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]


def errors_of(driver: Any) -> list[str]:
    """Errors on the console since the last call."""
    entries = driver.get_log("browser")
    return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]
