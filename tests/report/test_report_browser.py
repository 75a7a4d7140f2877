"""Reports in a browser: slider, tables, dark theme, small screens, print, keyboard, accessibility."""

import base64
import re
import shutil
import time

import numpy as np
import pytest
from report_cases import classes_model, labels_model, tasks_model, values_model

from leastwise.report import report_data, report_html
from leastwise.report.formatting import cell_text
from leastwise.report.thresholds import outcome

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium or chromedriver is not installed")
#: Nothing is fetched from anywhere.
QUIET = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
QUIET += ["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"]
LONG = "A name that is rather long for a task, number "
NUMBERS = ("threshold", "accepted", "rejected", "error", "bound")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in [*QUIET, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    yield made
    made.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The data and the address of each page."""
    multi, data = tasks_model(60, 6)
    names = {
        "tasks": {int(t): f"{LONG}{t}" for t in np.unique(data.task)},
        "classes": {0: "</script><b>no", 1: "😀 نعم"},
    }
    made = {
        "tasks": report_data(multi, title="Sixty tasks </title>", names=names),
        "classes": report_data(classes_model(10, 200)[0]),
        "many classes": report_data(classes_model(14, 210)[0].estimator_),
        "labels": report_data(labels_model()[0]),
        "values": report_data(values_model()[0]),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, known in made.items():
        (folder / f"{name}.html").write_text(report_html(known), encoding="utf-8")
    return {name: (known, (folder / f"{name}.html").as_uri()) for name, known in made.items()}


@pytest.fixture
def visit(browser, pages):
    """Open a report; afterwards check that the browser logged no errors, and reset its state."""

    def go(name, width=1100, **features):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = {"prefers_reduced_motion": "reduce", **features}
        told = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": told})
        browser.get(pages[name][1])
        return browser, pages[name][0]

    yield go
    assert browser.get_log("browser") == []
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    browser.execute_script("try { localStorage.clear(); } catch {}")


def find(browser, css):
    return browser.find_element("css selector", css)


def texts(browser, css):
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", css
    )


def places(path):
    return [float(v) for v in re.findall(r"[\d.]+", path)]


def numbers(browser):
    return {name: find(browser, f"#now-{name}").text for name in NUMBERS}


@pytest.mark.parametrize("name", ["tasks", "many classes", "labels"])
def test_the_slider_moves_by_keyboard_and_says_what_is_true(visit, name):
    from selenium.webdriver.common.keys import Keys

    browser, data = visit(name)
    known, slider = data["thresholds"], find(browser, "#threshold")
    place, last = known["groups"][0]["start"], len(known["stops"]) - 1
    assert numbers(browser) == outcome(known, 0, place)
    for key, to in [(Keys.ARROW_RIGHT, min(place + 1, last)), (Keys.HOME, 0), (Keys.ARROW_UP, 1), (Keys.END, last)]:
        slider.send_keys(key)
        assert slider.get_attribute("value") == str(to)
        assert numbers(browser) == outcome(known, 0, to)
        if known["confusions"]:
            assert texts(browser, "#confusion tbody td.n") == [f"{v:,}" for v in known["confusions"]["counts"][to]]
    assert slider.get_attribute("aria-valuetext") == numbers(browser)["threshold"]
    time.sleep(0.5)
    assert f"{numbers(browser)['rejected']} rejected" in find(browser, "#now-spoken").get_attribute("textContent")


def test_the_slider_shows_one_task(visit):
    from selenium.webdriver.support.ui import Select

    browser, data = visit("tasks")
    known, before = data["thresholds"], find(browser, "#risk-error").get_attribute("d")
    Select(find(browser, "#part")).select_by_index(3)
    assert numbers(browser) == outcome(known, 3, known["groups"][3]["start"])
    assert find(browser, "#risk-error").get_attribute("d") != before
    spot, line = find(browser, "#risk-spot"), find(browser, "#risk-line")
    assert spot.get_attribute("cx") == line.get_attribute("x1")
    Select(find(browser, "#part")).select_by_index(0)
    after = find(browser, "#risk-error").get_attribute("d")
    assert places(after) == pytest.approx(places(before), abs=0.11)  # a tenth, rounded up or down


def test_tables_sort_filter_and_turn_pages(visit):
    from selenium.webdriver.common.keys import Keys

    browser, data = visit("tasks")
    table, css = data["tables"][0], 'table[data-table="tasks-table"]'
    first, loss = f"{css} tbody tr > :nth-child(1)", f"{css} tbody tr > :nth-child(7)"
    lines = [[cell_text(v, c) for v, c in zip(line, table["columns"], strict=True)] for line in table["lines"]]
    assert texts(browser, first) == [line[0] for line in lines[:50]]
    assert texts(browser, loss) == [line[6] for line in lines[:50]]
    head = find(browser, f"{css} thead th:nth-child(7)")
    head.find_element("tag name", "button").send_keys(Keys.ENTER)
    assert head.get_attribute("aria-sort") == "descending"
    order = sorted(table["lines"], key=lambda line: -line[6])
    assert texts(browser, first) == [line[0] for line in order[:50]]
    head.find_element("tag name", "button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert texts(browser, first) == [line[0] for line in order[::-1][:50]]
    pager = find(browser, "#tasks .pager")
    back, on = pager.find_elements("tag name", "button")
    assert not back.is_enabled()
    on.click()
    assert texts(browser, first) == [line[0] for line in order[::-1][50:]]
    assert "Page 2 of 2" in pager.text
    find(browser, f"{css} thead th:nth-child(1) button").click()
    assert texts(browser, first)[:3] == [f"{LONG}{t}" for t in (0, 1, 2)]  # 10 comes after 9
    assert head.get_attribute("aria-sort") is None
    find(browser, "#tasks-table-filter").send_keys("NUMBER 7")
    assert texts(browser, first) == [f"{LONG}7"]
    assert find(browser, "#tasks-table-status").text == "1 of 60 tasks"
    find(browser, "#tasks-table-filter").send_keys("777")
    assert texts(browser, first) == []


def test_names_are_text(visit):
    browser, _ = visit("tasks")
    assert browser.title == "Sixty tasks </title>"
    assert texts(browser, "#confusion thead th") == ["</script><b>no", "😀 نعم"]
    assert not browser.find_elements("css selector", "main b:not(.cards b)")


def test_dark_by_system_and_by_switch(visit):
    def paper(browser):
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    browser, _ = visit("labels", prefers_color_scheme="dark")
    dark = paper(browser)
    assert find(browser, "#theme").get_attribute("aria-pressed") == "true"
    browser, _ = visit("labels", prefers_color_scheme="light")
    light, switch = paper(browser), find(browser, "#theme")
    assert light != dark
    switch.click()
    assert paper(browser) == dark
    assert switch.get_attribute("aria-pressed") == "true"
    browser.refresh()
    assert paper(browser) == dark  # it is remembered
    find(browser, "#theme").click()
    assert paper(browser) == light


@pytest.mark.parametrize("name", ["tasks", "classes", "labels", "values"])
def test_a_phone_need_not_scroll_sideways(visit, name):
    browser, _ = visit(name, width=360)
    wide = """const apart = ".scroll, .spoken, .skip, svg, script";
      return [...document.querySelectorAll("body *")]
        .filter((e) => !e.closest(apart) && e.getBoundingClientRect().right > 360.5)
        .map((e) => e.outerHTML.slice(0, 80))"""
    assert browser.execute_script("return document.documentElement.scrollWidth") == 360
    assert browser.execute_script(wide) == []


@pytest.mark.parametrize("name", ["tasks", "classes", "labels", "values"])
def test_pictures_keep_their_words_within(visit, name):
    browser, _ = visit(name)
    outside = """return [...document.querySelectorAll("svg text")].filter((t) => {
      const [a, b] = [t.getBoundingClientRect(), t.ownerSVGElement.getBoundingClientRect()];
      return a.left < b.left - 8 || a.right > b.right + 8 || a.top < b.top - 8 || a.bottom > b.bottom + 8;
    }).map((t) => t.textContent)"""
    assert browser.execute_script(outside) == []


def test_without_scripts_numbers_and_pictures_are_there(visit):
    browser, data = visit("tasks")
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(browser.current_url)
    assert not find(browser, "#threshold").is_displayed()
    assert not find(browser, "#tasks-table-filter").is_displayed()
    known = data["thresholds"]
    assert find(browser, "#now-accepted").text == outcome(known, 0, known["groups"][0]["start"])["accepted"]
    assert len(browser.find_elements("css selector", 'table[data-table="tasks-table"] tbody tr')) == 50
    assert "The first 50 of 60 tasks" in find(browser, "#tasks").text
    assert "Without JavaScript" in find(browser, "header").text
    assert len(browser.find_elements("css selector", "svg[role=img]")) >= 5


def test_it_prints(visit):
    browser, _ = visit("classes")
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 3


NAMED = {
    "button",
    "slider",
    "combobox",
    "searchbox",
    "textbox",
    "link",
    "region",
    "group",
    "navigation",
    "image",
    "table",
}
LANDMARKS = {"main", "banner", "contentinfo", "navigation"}


@pytest.mark.parametrize("name", ["tasks", "classes", "labels", "values"])
def test_a_screen_reader_finds_names_landmarks_and_headings(visit, name):
    browser, _ = visit(name)
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    seen = [node for node in nodes if not node.get("ignored")]

    def told(node):
        return node.get("name", {}).get("value", "").strip()

    roles = [node["role"]["value"] for node in seen]
    assert set(roles) >= LANDMARKS
    assert [r for r in roles if r in ("slider", "table", "image", "button", "link")]
    assert [node["role"] for node in seen if node["role"]["value"] in NAMED and not told(node)] == []
    controls = [told(n) for n in seen if n["role"]["value"] in ("slider", "searchbox", "combobox")]
    assert len(set(controls)) == len(controls)


def test_the_keyboard_reaches_all_and_shows_where_it_is(visit):
    from selenium.webdriver.common.keys import Keys

    browser, _ = visit("labels")
    body, seen = find(browser, "body"), []
    for _ in range(80):
        (browser.switch_to.active_element if seen else body).send_keys(Keys.TAB)
        now = browser.execute_script(
            "const e = document.activeElement; return [e.id || e.textContent.slice(0, 30), e.tagName, "
            "getComputedStyle(e).outlineStyle, parseFloat(getComputedStyle(e).outlineWidth)]"
        )
        if seen and now[:2] == seen[0][:2]:
            break
        seen.append(now)
    assert seen[0][0] == "Skip to the report"
    assert {"theme", "part", "threshold", "rows0-filter"} <= {s[0] for s in seen}
    assert not [s for s in seen if s[1] != "BODY" and (s[2] == "none" or s[3] < 2)]
