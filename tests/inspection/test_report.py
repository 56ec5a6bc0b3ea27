"""The report about a model: what it says, that it needs nothing else, and that browsers show it."""

import re
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import TimeSeriesSplit

from rfrboost import RFNNRegressor, RFRBoostClassifier, RFRBoostRegressor, load
from rfrboost.inspection import report

pytest.importorskip("matplotlib")

from rfrboost.inspection._report import page

QUICK = {"n_bags": 2, "features": ("swim",), "n_features": 16, "random_state": 0}
SECTIONS = ["Scores", "Importances", "Dependence", "Worst rows", "Columns", "How it was made"]


def flats(n=120):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "area": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(9, 9, n)),
            "town & <b>": rng.choice(["Here", "There", "Else<where>"], n),
            "built": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9e3, n), "D"),
            "rooms": rng.integers(1, 6, n),
        }
    )
    rent = 9 * X["area"].fillna(80) + 90 * (X["town & <b>"] == "Here") + 50 * rng.normal(size=n)
    return X, rent.rename("rent")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The report about a regressor, its path, and the rows it is about."""
    X, y = flats()
    y = y.copy()
    y[7] = 3000.0
    model = RFRBoostRegressor(**QUICK).fit(X, y)
    path = report(model, X, y, tmp_path_factory.mktemp("report") / "report.html", folds=2)
    return path.read_text(encoding="utf-8"), path, model, X, y


def headings(text):
    return re.findall(r"<h2>(.*?)</h2>", text)


def test_every_section_is_there_and_names_are_text(written):
    text, _, _, X, _ = written
    assert headings(text) == ["Scores", "Errors", "Intervals", *SECTIONS[1:]]
    assert "A model of rent" in text
    assert "Else<where>" not in text
    assert "town &amp; &lt;b&gt;" in text
    assert text.count("<svg ") == 4
    assert "their effects add up" in text, "in place of a figure of interactions"
    for name in ("HistGradientBoosting", "ridge regression", "this model", "R²", "MAE"):
        assert name in text
    for name in X.columns[[0, 2, 3]]:
        assert name in text


def test_nothing_is_fetched(written):
    text = written[0]
    addresses = set(re.findall(r"(?:href|src)=\"([^\"]*)\"", text))
    assert all(address.startswith(("#", "data:")) for address in addresses)
    spaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\s\"<]*", text)) <= spaces


def test_the_row_with_the_wrong_label_is_the_worst(written):
    text = written[0]
    worst = text[text.index('id="worst-rows"') :]
    first = re.search(r"<tbody>\s*<tr><td[^>]*>(\d+)</td>", worst)
    assert first is not None
    assert int(first.group(1)) == 8


def test_scores_are_those_of_rows_that_were_not_fitted(written):
    """A model that knows its rows by heart would have R² 1 on them."""
    X, _ = flats(80)
    noise = pd.Series(np.random.default_rng(1).normal(size=80), name="noise")
    model = RFRBoostRegressor(n_layers=3, n_features=200, l2_head=1e-9, random_state=0)
    numbers = X[["rooms"]].assign(a=np.arange(80.0), b=np.arange(80.0)[::-1] ** 2)
    model.fit(numbers, noise)
    path = report(model, numbers, noise, written[1].with_name("noise.html"), folds=2)
    r2 = re.search(r"cross-validated R² of (-?\d+\.\d+)", path.read_text(encoding="utf-8"))
    assert r2 is not None
    assert float(r2.group(1)) < 0.3
    assert model.score(numbers, noise) > 0.5


def test_classes_have_calibration_and_sets(tmp_path):
    X, y = flats()
    labels = pd.Series(np.digitize(y, np.quantile(y, [0.3, 0.7])), name="price").map(
        {0: "low", 1: "middle", 2: "high"}
    )
    model = RFRBoostClassifier(**QUICK).fit(X, labels)
    text = report(model, X, labels, tmp_path / "c.html", folds=2).read_text(encoding="utf-8")
    assert headings(text) == ["Scores", "Calibration", "Sets", *SECTIONS[1:]]
    for name in ("logistic regression", "AUC", "balanced accuracy", "probability of actual"):
        assert name in text


def test_single_networks_and_arrays_have_a_report_too(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = RFNNRegressor(n_features=10, random_state=0).fit(X, X[:, 0])
    text = report(model, X, X[:, 0], tmp_path / "r.html", folds=2).read_text(encoding="utf-8")
    assert "no prediction intervals" in text
    assert "A model of the target" in text
    assert "x2" in text


def test_wrong_rows_are_refused_and_no_file_is_left(written, tmp_path):
    _, _, model, X, y = written
    with pytest.raises(ValueError, match="120 rows, but y has 5"):
        report(model, X, y[:5], tmp_path / "r.html")
    with pytest.raises(ValueError, match="one target"):
        report(model, X, np.column_stack([y, y]), tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


def headline(path):
    """The cross-validated R² that a report begins with."""
    found = re.search(r"cross-validated R² of (-?\d+\.\d+)", path.read_text(encoding="utf-8"))
    assert found is not None
    return float(found.group(1))


def test_groups_are_held_out_as_a_whole(tmp_path):
    """The target is a number of each group, which only rows of the same group know."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(20), 12)
    X = np.column_stack([rng.normal(size=20)[group], rng.normal(size=240)])
    y = rng.normal(size=20)[group]
    model = RFRBoostRegressor(n_bags=2, features=("trees",), random_state=0)
    model.fit(X, y, groups=group)
    paths = [tmp_path / "random.html", tmp_path / "groups.html"]
    report(model, X, y, paths[0], folds=2)
    report(model, X, y, paths[1], folds=2, groups=group)
    assert headline(paths[0]) > 0.5 > 0.2 > headline(paths[1])
    assert "hold out whole groups, of which there are 20." in paths[1].read_text(encoding="utf-8")
    assert "drawn at random. If rows belong together" in paths[0].read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="240 rows, but there are 5 groups"):
        report(model, X, y, paths[0], groups=group[:5])


def test_later_rows_are_held_out_and_weights_count(tmp_path):
    X, y = flats(180)
    model = RFRBoostRegressor(**QUICK).fit(X, y)
    path = tmp_path / "time.html"
    report(model, X, y, path, cv=TimeSeriesSplit(2))
    text = path.read_text(encoding="utf-8")
    # Of three parts of the rows the first is never held out.
    assert "Means over folds of 120 rows" in text
    assert "Folds are those of TimeSeriesSplit." in text
    w = np.where(np.arange(180) < 60, 0.0, 1.0)
    y = y.copy()
    y[:60] = 1e6 * np.random.default_rng(1).normal(size=60)
    report(model, X, y, path, folds=2, sample_weight=w)
    assert headline(path) > 0.3


def test_a_loaded_model_has_no_score_of_its_fit_and_quantiles_are_refused(written, tmp_path):
    _, _, model, X, y = written
    assert "score of the fit itself" in written[0]
    model.save(tmp_path / "m.rfrboost")
    path = report(load(tmp_path / "m.rfrboost"), X, y, tmp_path / "r.html", folds=2)
    text = path.read_text(encoding="utf-8")
    assert "score of the fit itself" not in text
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)
    several = RFRBoostRegressor(**QUICK, loss="quantile", quantile=[0.1, 0.9]).fit(X, y)
    with pytest.raises(ValueError, match="predicts several quantiles"):
        report(several, X, y, tmp_path / "q.html")


def test_cells_are_shown_shortly_and_sorted_by_what_they_are():
    assert page.shown(12345.678) == "12,346"
    assert page.shown(0.123456) == "0.1235"
    assert page.shown(None) == page.shown(float("nan")) == "–"
    html = page.table([{"n": 2, "t": "<i>"}, {"n": None, "t": "b"}])
    assert '<td class="number" data-value="2">2</td>' in html
    assert '<td data-value="&lt;i&gt;">&lt;i&gt;</td>' in html
    assert '<td class="number" data-value="">–</td>' in html


# --- in a browser -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(written):
    webdriver = pytest.importorskip("selenium.webdriver")
    wait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no chromium and chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
    browser.get(written[1].as_uri())
    loaded = "return document.readyState === 'complete'"
    wait(browser, 60).until(lambda shown: shown.execute_script(loaded))
    yield browser
    browser.quit()


def in_width(browser, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def in_colours(browser, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def test_the_console_stays_empty(browser):
    assert browser.find_elements("tag name", "table")
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_fits_its_window(browser, width):
    in_width(browser, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_click_sorts_numbers_and_text_and_another_reverses(browser):
    in_width(browser, 1200)
    values = """
        const table = document.querySelector("#worst-rows table");
        const place = [...table.rows[0].cells].findIndex(c => c.innerText.startsWith(arguments[0]));
        table.rows[0].cells[place].querySelector("button").click();
        return [...table.tBodies[0].rows].map(row => row.cells[place].dataset.value);
    """
    for name, key in (("error", float), ("town", str)):
        rising = browser.execute_script(values, name)
        assert rising == sorted(rising, key=key)
        falling = browser.execute_script(values, name)
        assert falling == sorted(rising, key=key, reverse=True)
    area = browser.execute_script(values, "area")
    known = [value for value in area if value]
    assert area[: len(known)] == known == sorted(known, key=float)


def test_dark_and_light_have_their_own_colours(browser):
    look = """
        const luminance = (c) => c.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0);
        const style = (e, name) => luminance(getComputedStyle(e)[name]);
        return [style(document.body, "backgroundColor"), style(document.body, "color"),
                style(document.querySelector("figure svg text"), "fill")];
    """
    in_colours(browser, "light")
    ground, ink, label = browser.execute_script(look)
    assert ground > 600 > 300 > max(ink, label)
    in_colours(browser, "dark")
    ground, ink, label = browser.execute_script(look)
    assert ground < 150 < 450 < min(ink, label)
