"""`kav demo`: names of models, and the page in a browser.

The page needs the extra `demo`, and its test Selenium, Chromium and its driver.
"""

import importlib.util
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from keras_attnvariants.cli.demo import examples_of
from keras_attnvariants.cli.models import short_names
from keras_attnvariants.trained import names
from tests.chromium import chromium
from tests.chromium import errors_of
from tests.chromium import requests_of
from tests.cli.conftest import check_error

TEXT = "be la"
EXAMPLES = ("la la be", "be be")


def test_models_are_called_by_short_names(run_folder, tmp_path, monkeypatch):
    name = "kav/toy/reversed-xx-yy"
    box, other = tmp_path / "models" / name, tmp_path / "other" / "best"
    for folder in (box, other):
        shutil.copytree(run_folder / "best", folder)
    monkeypatch.setattr(names, "MODELS", tmp_path / "models")
    paths = [str(run_folder), str(run_folder / "best"), str(other)]
    found = short_names([*paths, name])
    assert list(found) == [run_folder.name, *paths[1:], name]
    assert list(found.values()) == [*map(Path, paths), box]
    assert short_names(paths[:2]) == {
        run_folder.name: run_folder,
        "best": run_folder / "best",
    }


def test_examples_are_in_the_language_of_the_model(tmp_path):
    german, english = (
        examples_of(names.MODELS / f"kav/homogeneous-conv-kv/tatoeba-{pair}")
        for pair in ("de-en", "en-de")
    )
    assert len(german) == len(english) == 3
    assert "Ich wohne seit 1998 in Hamburg." in german
    assert not set(german) & set(english)
    assert examples_of(tmp_path) == []


def test_an_unknown_model(kav):
    check_error(kav("demo", "kav/nothing"), "--model", "'kav/nothing'")


@pytest.mark.parametrize(
    ("call", "module", "extra"),
    [(("demo",), "gradio", "demo"), (("serve",), "mlserver", "mlserver")],
)
def test_without_the_extra(call, module, extra, kav, monkeypatch, run_folder, tmp_path):
    (tmp_path / "saved_model.pb").touch()
    path = {"demo": run_folder, "serve": tmp_path}[call[0]]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check_error(kav(*call, path), f"{module}, not installed here", f"[{extra}]")


@contextmanager
def page_of(*models):
    """Context with the address of a page with models."""
    pytest.importorskip("gradio", reason="needs the extra `demo`")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    call = [sys.executable, "-m", "keras_attnvariants", "demo", *map(str, models)]
    process = subprocess.Popen([*call, "--port", str(port), "--beam-size", "4"])
    end = time.monotonic() + 120
    while True:
        assert process.poll() is None and time.monotonic() < end
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            time.sleep(0.2)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(30)


@pytest.fixture(scope="module")
def address(run_folder):
    """The address of the page, with two models; the name of one contains `<b>`."""
    folder = run_folder.parent / "<b>model"
    if not folder.exists():
        shutil.copytree(run_folder / "best", folder)
    offered = [option for text in EXAMPLES for option in ("--example", text)]
    with page_of(run_folder, folder, *offered) as found:
        yield found


@pytest.mark.slow
def test_the_page_takes_no_files(address):
    for path in ("upload", "upload?upload_id=1", "component_server"):
        for data in (b"", b"data"):
            files = {"files": ("name.txt", data)}
            reply = httpx.post(f"{address}/gradio_api/{path}", files=files)
            assert (reply.status_code, "no files" in reply.text) == (413, True)


@pytest.fixture(params=[(1200, 900), (390, 844)], ids=["desk", "telephone"])
def browser(request):
    yield from chromium(*request.param)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_page(address, browser, tmp_path):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    def find(selector):
        return WebDriverWait(browser, 60).until(
            lambda b: b.find_elements(By.CSS_SELECTOR, selector)
        )

    def tables():
        selectors = ".kav-weights table", "ol > li:first-child:has([data-t])"
        found, best = (
            browser.find_elements(By.CSS_SELECTOR, f"#left {selector}")
            for selector in selectors
        )
        # One for each best translation that has words.
        assert len(found) == len(best)
        return found

    browser.get(address)
    assert find("h1")[0].text == "Translation models"
    examples = [found.text for found in find("#examples .gallery-item")]
    assert examples == [*EXAMPLES]
    [box] = find("#text textarea")
    # By keyboard alone: the box has the focus.
    box.send_keys(f"{TEXT}\n<i>la</i>")
    box.send_keys(Keys.SHIFT, Keys.ENTER)
    words = find("#left [data-t]")
    find("#right [data-t]")
    left, right = (find(f"#{side}")[0].text for side in ("left", "right"))
    for text in (left, right):
        assert TEXT in text and "<i>la</i>" in text
        assert re.search(r"\d\.\d\d s", text)
        assert len(re.findall(r"-\d+\.\d\d", text)) == 6
    assert "<b>model" in right

    def shaded():
        return [
            span
            for span in find("#left [data-s]")
            if browser.execute_script(
                "return getComputedStyle(arguments[0]).backgroundColor", span
            )
            not in ("rgba(245, 158, 11, 0)", "rgba(0, 0, 0, 0)")
        ]

    # The table of each sentence shows its weights without pointing.
    found = tables()
    assert found[0].is_displayed() and words[0].text in found[0].text
    assert shaded() == []
    ActionChains(browser).move_to_element(words[0]).perform()
    assert shaded()
    ActionChains(browser).move_to_element(box).perform()
    assert shaded() == []
    # And by keyboard.
    browser.execute_script("arguments[0].focus()", words[0])
    first = shaded()
    assert first
    ActionChains(browser).send_keys(Keys.TAB).perform()
    active = browser.switch_to.active_element
    assert active.get_attribute("data-t") == words[1].get_attribute("data-t")
    assert shaded()
    # An example is translated at once.
    find("#examples .gallery-item")[1].click()
    WebDriverWait(browser, 60).until(lambda _: TEXT not in find("#left")[0].text)
    tables()
    (left,), (right,) = find("#left"), find("#right")
    is_narrow = browser.execute_script("return window.innerWidth < 500")
    assert (left.location["y"] < right.location["y"]) == is_narrow
    width = browser.execute_script(
        "return document.documentElement.scrollWidth - window.innerWidth"
    )
    assert width <= 0
    browser.save_screenshot(str(tmp_path / "page.png"))  # for people who look at it
    addresses = [url for url in requests_of(browser) if url.startswith(("http", "ws"))]
    assert {"/".join(url.split("/")[:3]) for url in addresses} == {address}
    assert errors_of(browser) == []
