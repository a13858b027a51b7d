"""The page in a real browser: it sorts, filters and downloads, asks for nothing, and names cannot run."""

import base64
import json
import shutil
import time

import numpy as np
import pytest
from every_kind import DATASETS, every
from evil import renamed

import scaleshift as ss

selenium = pytest.importorskip("selenium", reason="selenium is missing: pip install 'scaleshift[test]'")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None,
    reason="no Chromium with its driver: apt install chromium chromium-driver",
)
KINDS = [*(name for name in DATASETS if name != "replicates of a closed form"), "gates"]
EVIL = "<script>window.evil = 1</script><img src=x onerror='window.evil = 1'>"
LABEL = "B\"><b onmouseover='window.evil = 1'>"


@pytest.fixture(scope="module")
def result():
    """Six samples of the demo, learned from two others; some names would run if they were not escaped."""
    cells = ss.datasets.load_demo()
    cells = cells.isel(cell=np.flatnonzero(np.arange(cells.sizes["cell"]) % 36 == 0))
    samples = cells["sample"].values[cells["sample_code"].values]
    source = cells.isel(cell=np.flatnonzero(np.isin(samples, ["S01", "S09"])))
    found = ss.OpenSetQuantifier(n_bootstrap=20, random_state=0).fit(source).predict(cells)
    return found.assign_coords(
        sample=["S1", "S2", "S10", EVIL, "S9", "S11", "S13", "S15"],
        label=[LABEL, "CD4 T", "CD8 T", "Monocytes"],
        day=("sample", [0, 7, 14, 0, 7, 14, 0, 7]),
    )


@pytest.fixture(scope="module")
def page(result, tmp_path_factory):
    """Path of the page, an empty sample among the others."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    ss.report.page(_with_empty(result), path)
    return path


def _with_empty(result):
    """The third sample without an answer."""
    missing = {
        name: result[name].where(result["sample"] != "S10")
        for name in ("proportion", "proportion_low", "proportion_high", "unknown")
    }
    return result.assign(missing)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1300,1000"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    folder = tmp_path_factory.mktemp("downloads")
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.downloads = folder
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, page):
    browser.get_log("performance")
    browser.get(page.as_uri())
    return browser


def button(browser, text, section="s2"):
    buttons = browser.find_elements(By.CSS_SELECTOR, f"#{section} button")
    return next(b for b in buttons if b.text.startswith(text))


def samples(browser):
    """Names of the rows that are seen, from the top."""
    return [row.text for row in browser.find_elements(By.CSS_SELECTOR, "#s2 tbody th") if row.is_displayed()]


def column(browser, text):
    """What stands below a heading, from the top: the number, without its interval."""
    script = """
        const heads = [...document.querySelectorAll("#s2 thead th")];
        const i = heads.findIndex((head) => head.textContent === arguments[0]);
        return [...document.querySelectorAll("#s2 tbody tr")].map(
            (row) => (row.cells[i].querySelector("b") ?? row.cells[i]).textContent);"""
    return browser.execute_script(script, text)


def test_it_asks_for_nothing_but_itself_and_nothing_goes_wrong(opened, page):
    assert opened.get_log("browser") == []
    asked = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"]
    assert set(urls) == {page.as_uri()}


def test_names_are_shown_and_never_run(opened):
    assert EVIL in samples(opened)
    assert LABEL in opened.find_element(By.CSS_SELECTOR, "#s2 .legend").text
    assert opened.execute_script("return window.evil") is None
    assert opened.find_elements(By.CSS_SELECTOR, "img, b[onmouseover]") == []


def test_a_click_sorts_by_numbers_the_largest_first_and_what_is_missing_last(opened):
    before = samples(opened)
    button(opened, "Monocytes").click()
    falling = column(opened, "Monocytes")
    assert falling[-1] == "-"
    assert len(set(falling)) > 4
    assert [float(x) for x in falling[:-1]] == sorted(map(float, falling[:-1]), reverse=True)
    button(opened, "Monocytes").click()
    assert column(opened, "Monocytes") == [*falling[-2::-1], "-"]
    assert opened.find_element(By.CSS_SELECTOR, "th[aria-sort=ascending]").text.startswith("Monocytes")
    button(opened, "Monocytes").click()
    assert samples(opened) == before


def test_names_are_sorted_as_people_do(opened):
    button(opened, "sample").click()
    named = [name for name in samples(opened) if name != EVIL]
    assert named == ["S1", "S2", "S9", "S10", "S11", "S13", "S15"]


def test_rows_are_filtered_by_words_and_by_flags(opened, result):
    search = opened.find_element(By.CSS_SELECTOR, "#s2 input[type=search]")
    search.send_keys("s1")
    assert samples(opened) == ["S1", "S10", "S11", "S13", "S15"]
    assert opened.find_element(By.CSS_SELECTOR, "#s2 output").text == "5 of 8 rows"
    search.clear()
    search.send_keys(Keys.BACKSPACE)
    opened.find_element(By.CSS_SELECTOR, "#s2 input[type=checkbox]").click()
    flagged = result["sample"].values[result["flag"].values != ""].tolist()
    assert 0 < len(flagged) < 8
    assert samples(opened) == flagged


def test_the_download_is_the_table_to_the_byte(opened, result, tmp_path):
    button(opened, "Download").click()
    there = opened.downloads / "proportions.csv"
    for _ in range(100):
        if there.exists():
            break
        time.sleep(0.1)  # a browser writes when it likes
    ss.report.table(_with_empty(result), tmp_path / "expected.csv")
    assert there.read_bytes() == (tmp_path / "expected.csv").read_bytes()


def test_it_is_used_by_keyboard_alone(opened):
    def focused():
        return opened.switch_to.active_element

    opened.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert focused().text == "Skip to the results"
    focused().send_keys(Keys.ENTER)
    met = []
    for _ in range(30):
        focused().send_keys(Keys.TAB)
        met.append(focused().text or focused().get_attribute("aria-label") or "")
        if met[-1].startswith("unknown"):
            break
    focused().send_keys(Keys.ENTER)
    assert any(name.startswith("Filter rows") for name in met)
    assert opened.find_element(By.CSS_SELECTOR, "th[aria-sort]").text.startswith("unknown")


def test_a_screen_reader_hears_headings_tables_and_row_names(opened):
    tree = opened.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    heard = [(node["role"]["value"], node.get("name", {}).get("value")) for node in tree if "role" in node]
    assert ("heading", "Class proportions of 8 samples") in heard
    assert ("rowheader", "S13") in heard
    tables = [name for role, name in heard if role == "table"]
    assert all(tables)
    assert tables[0].startswith("Per cent of all cells")
    controls = {"button", "searchbox", "checkbox", "link"}
    assert [role for role, name in heard if role in controls and not name] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_by_day_and_by_night(opened, scheme):
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    colours = """
        const style = getComputedStyle(document.querySelector(arguments[0]));
        return [style.color, getComputedStyle(document.body).backgroundColor];"""
    for selector in ("body", "caption", ".points strong", "nav a", "td small"):
        assert contrast(*opened.execute_script(colours, selector)) > 4.5, selector
    back = opened.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (luminance(back) > 0.5) == (scheme == "light")


def luminance(colour):
    """Of "rgb(r, g, b)", from 0 to 1 (WCAG 2)."""
    parts = np.array([int(x) for x in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_a_narrow_screen_scrolls_tables_and_not_the_page(opened):
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        width = opened.execute_script("return document.documentElement.scrollWidth")
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width <= 390


def test_on_paper_it_has_pages_and_no_buttons(opened):
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = [one for one in opened.find_elements(By.CSS_SELECTOR, ".tools, nav") if one.is_displayed()]
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert shown == []
    printed = opened.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")


def test_tables_after_a_chart_work_too(browser, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["B", "T"], [100, 400])
    X = rng.normal(size=(500, 6)) + np.outer(y == "B", [2, 1, 0.5, 0, 0, 0])
    model = ss.SparseAUC(k=[1, 2, 3], pos_label="B", random_state=0).fit(X, y)
    ss.report.page([model.describe(), model.path_], tmp_path / "report.html")
    browser.get((tmp_path / "report.html").as_uri())
    assert browser.find_elements(By.CSS_SELECTOR, "svg[role=img] circle.chosen")
    grids = browser.find_elements(By.CSS_SELECTOR, "div.grid")
    assert len(grids) > 1
    for grid in grids:
        assert grid.find_elements(By.CSS_SELECTOR, "th button")
        assert grid.find_elements(By.CSS_SELECTOR, "input[type=search]")
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_name_of_any_result_runs(browser, tmp_path, kind):
    path = tmp_path / "report.html"
    ss.report.page(renamed(every()[kind][1]), path)
    browser.get_log("performance")
    browser.get(path.as_uri())
    for element in browser.find_elements(By.CSS_SELECTOR, "td[title], th[title]")[:3]:
        browser.execute_script("arguments[0].dispatchEvent(new Event('mouseover'))", element)
    assert browser.execute_script("return window.evil ?? null") is None
    assert browser.get_log("browser") == []
    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"]
    assert set(urls) == {path.as_uri()}
