"""The page in a browser; needs the extra `test-demo`, Chromium and its driver."""

import numpy as np
import pytest

from keras_attnvariants.experiments.page import write_page
from tests.chromium import chromium
from tests.chromium import errors_of
from tests.chromium import requests_of
from tests.chromium import resize
from tests.experiments import real_sizes

# The page that is committed.
LARGEST = 3_000_000
# Widths, and the largest heights there.
WIDTHS = {360: 14_000, 768: 10_500, 1440: 9_500}


@pytest.fixture(scope="module")
def result():
    return real_sizes.comparison()


@pytest.fixture(scope="module")
def path(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page(result, path)
    return path


@pytest.fixture
def browser(path):
    for driver in chromium(1440, 900):
        driver.get(path.as_uri())
        yield driver


def find(browser, selector):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 20).until(
        lambda driver: driver.find_elements(By.CSS_SELECTOR, selector)
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_page(browser, path, result):
    assert path.stat().st_size < LARGEST
    find(browser, "#browser .heat")
    check_tables(browser)
    check_the_first_attention(browser, result)
    check_attention(browser, result)
    check_charts(browser)
    check_links(browser)
    check_widths(browser)
    check_paper_and_dark(browser)
    # The corpora contain text that would open a dialogue.
    text = browser.execute_script("return document.body.textContent")
    assert "<script>alert('a sentence')</script>" in text
    assert set(requests_of(browser)) == {path.as_uri()}
    assert errors_of(browser) == []


def click(browser, element):
    """Clicks an element where the navigation does not cover it."""
    center = "arguments[0].scrollIntoView({block: 'center'})"
    browser.execute_script(center, element)
    element.click()


def column(table, number):
    return [
        row.find_elements("css selector", "th, td")[number].text
        for row in table.find_elements("css selector", "tbody tr")
    ]


def check_tables(browser):
    """Tables sort by a click and by keyboard."""
    from selenium.webdriver.common.keys import Keys

    table = find(browser, "#costs table")[0]
    headings = table.find_elements("css selector", "thead th")
    buttons = table.find_elements("css selector", "thead button")
    orders = [heading.get_attribute("aria-sort") for heading in headings]
    assert set(orders) == {"none"}
    click(browser, buttons[3])
    minutes = [float(text) for text in column(table, 3)]
    assert minutes == sorted(minutes)
    assert headings[3].get_attribute("aria-sort") == "ascending"
    browser.execute_script("arguments[0].focus()", buttons[3])
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert headings[3].get_attribute("aria-sort") == "descending"
    assert [float(text) for text in column(table, 3)] == minutes[::-1]
    buttons[0].send_keys(Keys.SPACE)
    assert headings[0].get_attribute("aria-sort") == "ascending"
    assert headings[3].get_attribute("aria-sort") == "none"
    assert column(table, 0) == sorted(real_sizes.BLEU)
    # The baseline has no p-value: it comes last in both orders.
    table = find(browser, "#scores table")[0]
    for _ in range(2):
        click(browser, table.find_elements("css selector", "thead button")[4])
        assert column(table, 0)[-1] == "base"


def choose(browser, name, text):
    from selenium.webdriver.support.ui import Select

    Select(find(browser, f'#browser [name="{name}"]')[0]).select_by_visible_text(text)


def choose_head(browser, name):
    heads = {head.text: head for head in find(browser, "#browser .heads button")}
    click(browser, heads[name])
    assert heads[name].get_attribute("aria-pressed") == "true"
    return heads


def aligned(weights):
    """Nearness of weights to an alignment: the mean over columns of the largest."""
    return np.max(weights, axis=0).mean()


def check_the_first_attention(browser, result):
    """The layer of cross-attention and the head that align best."""
    from selenium.webdriver.support.ui import Select

    [place, layer] = (
        Select(find(browser, f'#browser [name="{name}"]')[0]).first_selected_option.text
        for name in ("place", "layer")
    )
    first = result.attention[0]
    layers = {
        str(found.layer): np.array(found.heads)
        for found in result.attention
        if (found.system, found.number, found.place, found.is_quadrant)
        == (first.system, first.number, "cross", False)
    }
    assert place == "cross-attention"
    assert layer == max(layers, key=lambda n: aligned(layers[n].mean(axis=0)))
    heads = {f"head {n + 1}": head for n, head in enumerate(layers[layer])}
    heads = {"mean": layers[layer].mean(axis=0), **heads}
    buttons = find(browser, "#browser .heads button")
    assert [button.text for button in buttons] == list(heads)
    assert len(find(browser, "#browser .heads svg")) == len(heads)
    [pressed] = find(browser, '#browser .heads [aria-pressed="true"]')
    assert pressed.text == max(heads, key=lambda name: aligned(heads[name]))


def check_attention(browser, result):
    """A cell shows the measured weight, by mouse and by keyboard."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    choose(browser, "system", "hc-sa")
    choose(browser, "sentence", real_sizes.SENTENCES[1][0])
    choose(browser, "place", "cross-attention")
    choose(browser, "layer", "3")
    choose_head(browser, "head 2")
    [layer] = [
        layer
        for layer in result.attention
        if (layer.system, layer.number, layer.place, layer.layer)
        == ("hc-sa", 1, "cross", 3)
    ]

    def check_reading(row, column):
        [reading] = find(browser, "#browser .reading")
        before, _, weight = reading.text.rpartition(" ")
        query, key = layer.queries[row], layer.keys[column]
        assert before == f"“{query}” attends to “{key}” with"
        assert float(weight) == pytest.approx(layer.heads[1][row][column], abs=0.003)
        highlighted = {word.text for word in find(browser, ".strips .on")}
        assert highlighted == {query, key}

    [first] = find(browser, '.heat td[data-row="0"][data-column="0"]')
    browser.execute_script("arguments[0].focus()", first)
    check_reading(0, 0)
    for key in (Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT):
        browser.switch_to.active_element.send_keys(key)
    check_reading(1, 2)
    browser.switch_to.active_element.send_keys(Keys.END)
    check_reading(1, len(layer.keys) - 1)
    browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    check_reading(1, len(layer.keys) - 1)
    [cell] = find(browser, '.heat td[data-row="4"][data-column="3"]')
    ActionChains(browser).move_to_element(cell).perform()
    check_reading(4, 3)
    word = find(browser, '[data-strip="rows"] bdi')[2]
    ActionChains(browser).move_to_element(word).perform()
    [reading] = find(browser, "#browser .reading")
    assert reading.text.startswith(f"“{layer.queries[2]}” attends most to “")
    choose(browser, "system", "interleaved-query-k")
    choose_head(browser, "phrase quadrants")
    titles = [title.text for title in find(browser, ".matrices figcaption")]
    assert titles == [
        f"{query} to {key}"
        for query in ("tokens", "phrases")
        for key in ("tokens", "phrases")
    ]
    choose(browser, "sentence", real_sizes.SENTENCES[-1][0])
    assert find(browser, '[data-strip="rows"] bdi')[0].text.startswith("</script>")


def check_charts(browser):
    """A mark shows its label; a system can be highlighted."""
    from selenium.webdriver.common.action_chains import ActionChains

    [mark] = find(browser, '.overview .wide path[data-series="hc-all"][d^="M"]')
    ActionChains(browser).move_to_element(mark).perform()
    [tip] = find(browser, "#tip")
    assert tip.text.startswith("hc-all: 27.") and "training time" in tip.text
    [button] = find(browser, '#curves .legend [data-series="lstm"]')
    click(browser, button)
    assert button.get_attribute("aria-pressed") == "true"
    [svg, *_] = find(browser, "#curves figure svg.focusing")
    marks = svg.find_elements("css selector", "[data-series].focused")
    assert {mark.get_attribute("data-series") for mark in marks} == {"lstm"}
    click(browser, button)
    assert button.get_attribute("aria-pressed") == "false"


def check_links(browser):
    """Every link leads to a place in the page."""
    links = browser.execute_script(
        "return [...document.links].map((link) => link.getAttribute('href'))"
    )
    assert len(links) == 9
    for number, link in enumerate(links):
        browser.execute_script(f"document.links[{number}].click()")
        target = browser.execute_script("return document.querySelector(':target').id")
        assert f"#{target}" == link
        # The navigation stays, and covers no heading.
        tops = browser.execute_script(
            "return ['nav', ':target'].map("
            "(x) => document.querySelector(x).getBoundingClientRect().top)"
        )
        assert tops[0] >= 0 and tops[1] >= 0


def check_widths(browser):
    """The page is as wide as the window, and not long; only tables scroll."""
    for width, longest in WIDTHS.items():
        resize(browser, width, 900)
        height = "return document.documentElement.scrollHeight"
        assert browser.execute_script(height) < longest
        over = browser.execute_script(
            "return document.documentElement.scrollWidth - window.innerWidth"
        )
        assert over <= 0, width


def check_paper_and_dark(browser):
    """The page is dark where that is preferred, and white on paper."""

    def background(**media):
        media["features"] = [
            {"name": "prefers-color-scheme", "value": media.pop("scheme")}
        ]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        return browser.execute_script(
            "return getComputedStyle(document.body).backgroundColor"
        )

    assert background(scheme="light") == "rgb(255, 255, 255)"
    assert background(scheme="dark") == "rgb(20, 23, 27)"
    assert background(scheme="dark", media="print") == "rgb(255, 255, 255)"
