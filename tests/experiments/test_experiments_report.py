"""The report: our runs compared with the published ones, and a page that works in a browser."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from experiments.__main__ import main
from experiments.data.published import COLUMNS
from experiments.models.naming import with_our_names
from experiments.models.recipes import Recipe
from experiments.models.scoring import Scores
from experiments.reports.html import page
from experiments.reports.html.sections import dataset_pairs, model_pairs, paired_folds
from experiments.runs.jobs import Job, Result, read_results, write_result

TABLES = {
    "regression": [41021, 44956, 44957, 44958, 44959, 44960, 44962, 44963],
    "classification": [3, 6, 11, 14, 15, 16, 18],
}
MODELS = {
    "regression": {
        "gradient-swim": "GradientRFRBoost_ID_batchnormFalse",
        "gradient-iid": "GradientRFRBoost_ID_batchnormFalse_featiid",
        "ridge": "Ridge",
        "xgboost": "XGBoostRegressor",
    },
    "classification": {
        "rfrboost-swim": "RFRBoost_ID_batchnormFalse",
        "logistic": "LogisticRegression",
        "mlp": "End2End_cpu",
    },
}
FOLDS = 3
# What ours adds to the published score of a model; ridge repeats it, up to its stored digits.
ROUNDING = 1e-8
OURS_MINUS_PUBLISHED = {"gradient-swim": -0.01, "ridge": ROUNDING, "logistic": 0.02}


def published_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        [
            (task, dataset, name, fold, 0.5 + 0.03 * k + rng.normal(0, 0.01), 1.5, "{}")
            for task, names in MODELS.items()
            for name in names.values()
            for k, dataset in enumerate(TABLES[task])
            for fold in range(FOLDS)
        ],
        columns=COLUMNS,
    )


def store(out: Path, runs: pd.DataFrame) -> None:
    for row in runs.itertuples():
        job = Job("paper", row.dataset, row.model, row.fold, Recipe("Ridge", {"l2_head": 0.01}))
        write_result(Result(job, Scores(0.1, row.test_score, 0.25, 0.1), None), out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Published runs, a replay of three models, searches of all, and a picture of circles."""
    folder = tmp_path_factory.mktemp("report")
    frame = published_frame()
    frame.to_parquet(folder / "published.parquet")
    ours = with_our_names(frame)
    replayed = ours[ours["model"].isin(OURS_MINUS_PUBLISHED)]
    shift = replayed["model"].map(OURS_MINUS_PUBLISHED)
    noise = np.random.default_rng(1).normal(0, 0.002, len(replayed)) * (shift != ROUNDING)
    store(
        folder / "out" / "replay",
        replayed.assign(test_score=replayed["test_score"] + shift + noise),
    )
    store(folder / "out" / "run", ours)
    (folder / "out" / "regret").mkdir()
    (folder / "out" / "regret" / "excess-risk.svg").write_text(
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="90" height="60">'
        '<defs><path id="a" d="M0 0h9v9z"/></defs><use href="#a"/></svg>',
        encoding="utf-8",
    )
    (folder / "out" / "regret" / "regret.csv").write_text("layers,risk\n1,0.5\n10,0.25\n2,0.4\n")
    return folder


def make(folder: Path) -> str:
    words = ["report", "--published-runs", str(folder / "published.parquet")]
    assert main([*words, "--out", str(folder / "out")]) == 0
    return (folder / "out" / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(folder) -> str:
    return make(folder)


# --- the figures ------------------------------------------------------------------------------


def test_pairs_carry_the_difference_and_its_tests(folder):
    ours = read_results(folder / "out" / "replay", "paper")
    published = with_our_names(pd.read_parquet(folder / "published.parquet"))
    folds = paired_folds(ours, published)
    assert len(folds) == len(ours) == FOLDS * (2 * 8 + 7)
    datasets = dataset_pairs(folds)
    one = folds[(folds["model"] == "gradient-swim") & (folds["dataset"] == 44957)]
    row = datasets[(datasets["model"] == "gradient-swim") & (datasets["dataset"] == 44957)].iloc[0]
    test = stats.ttest_rel(one["test_score"], one["test_score_published"])
    assert row["p"] == pytest.approx(test.pvalue, rel=1e-2)
    assert row["difference"] == pytest.approx(row["ours"] - row["published"], abs=1e-6)

    models = model_pairs(datasets).set_index("model")
    assert models.loc["Gradient RFRBoost", ["better", "worse"]].tolist() == [8, 0]
    assert models.loc["Logistic regression", ["better", "worse"]].tolist() == [7, 0]
    assert models.loc["Ridge regression", ["better", "worse", "p"]].tolist() == [0, 0, 1]
    raw = {
        name: stats.wilcoxon(datasets[datasets["model"] == name]["difference"]).pvalue
        for name in ("gradient-swim", "logistic")
    }
    # Holm over three models: the smallest times three, the next times two.
    assert models.loc["Gradient RFRBoost", "p"] == pytest.approx(3 * raw["gradient-swim"])
    assert models.loc["Logistic regression", "p"] == pytest.approx(2 * raw["logistic"])


def test_the_page_has_a_section_for_everything_that_was_run(text):
    titles = re.findall(r"<h2>(.*?)</h2>", text)
    assert titles == [
        "Published hyper-parameters, our code",
        "Our searches, protocol paper",
        "The regret bound as an experiment",
        "Published runs",
        "Machine and versions",
    ]
    assert "2 of 3 models differ significantly" in text
    assert "airfoil_self_noise" in text
    assert "the rows per layer (excess-risk).</figcaption>" in text


def test_the_page_needs_no_other_file(text):
    wanted = re.findall(r'(?:src|href|data|action)="([^"#]+)', text)
    assert [target for target in wanted if not target.startswith("data:")] == []
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_ids_are_unique_and_references_meet_them(text):
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    references = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)
    assert references
    assert {first or second for first, second in references} <= set(ids)


def test_the_same_results_give_the_same_bytes(folder, text):
    assert make(folder) == text


def test_tables_escape_what_they_show_and_sort_by_unrounded_values():
    rows = pd.DataFrame({"name": ["<b>", "a&b"], "p": [0.00004, np.nan], "x": [1 / 3, -1e-9]})
    text = page.table(rows)
    assert "&lt;b&gt;" in text
    assert 'data-value="a&amp;b"' in text
    assert f'data-value="{1 / 3}">0.3333' in text
    assert ">0.0000<" in text
    assert 'class="number significant" data-value="4e-05">&lt; 0.001' in text
    assert 'class="number" data-value="">–' in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Nothing to report"),
        (["--models", "nothing"], "Unknown nothing"),
        (["--tables", "1"], "Unknown 1"),
    ],
)
def test_a_request_that_cannot_be_met_writes_nothing(folder, tmp_path, capsys, words, message):
    out = tmp_path / "out"
    file = folder / "published.parquet"
    assert main(["report", "--published-runs", str(file), "--out", str(out), *words]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


# --- in a browser -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(folder, text):
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
    browser.get((folder / "out" / "report.html").as_uri())
    # On a busy machine the driver may answer before the page is there.
    loaded = "return document.readyState === 'complete'"
    wait(browser, 60).until(lambda page: page.execute_script(loaded))
    yield browser
    browser.quit()


def column(browser, table: int, index: int) -> list[str]:
    script = """
        const rows = document.querySelectorAll("table")[arguments[0]].tBodies[0].rows;
        return Array.from(rows, (row) => row.cells[arguments[1]].dataset.value);
    """
    return browser.execute_script(script, table, index)


def click(browser, table: int, index: int) -> str:
    """Click on a header as a user would; its aria-sort afterwards."""
    script = 'return document.querySelectorAll("table")[arguments[0]].rows[0].cells[arguments[1]]'
    header = browser.execute_script(script, table, index)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", header)
    header.find_element("tag name", "button").click()
    return header.get_attribute("aria-sort")


def tables_with(browser, names: list[str]) -> list[tuple[int, list[int]]]:
    """The tables with these columns, each with the places of the columns."""
    script = """
        return Array.from(document.querySelectorAll("table"), (table) =>
            Array.from(table.rows[0].cells, (cell) => cell.innerText.trim()));
    """
    return [
        (k, [headers.index(name) for name in names])
        for k, headers in enumerate(browser.execute_script(script))
        if set(names) <= set(headers)
    ]


def test_the_page_loads_without_a_word_in_the_console(browser):
    assert browser.find_elements("tag name", "table"), "the page is empty"
    assert browser.get_log("browser") == []


def test_a_click_sorts_numbers_as_numbers_and_another_reverses(browser):
    # Regression, with negative differences, and classification, with ids 3 and 11.
    tables = tables_with(browser, ["dataset", "difference", "p"])
    assert "3" in column(browser, tables[1][0], tables[1][1][0])
    for table, (dataset, difference, _) in tables[:2]:
        for index in (dataset, difference):
            before = [float(value) for value in column(browser, table, index)]
            assert click(browser, table, index) == "ascending"
            assert [float(v) for v in column(browser, table, index)] == sorted(before)
            assert click(browser, table, index) == "descending"
            assert [float(v) for v in column(browser, table, index)] == sorted(before)[::-1]


def test_cells_without_a_value_stay_last_and_one_header_is_sorted(browser):
    table, (_, p) = tables_with(browser, ["dataset", "p"])[0]
    for _ in range(2):
        click(browser, table, p)
        values = column(browser, table, p)
        assert values[-8:] == [""] * 8, "ridge repeats the published scores on eight tables"
        assert "" not in values[:-8]
    script = 'return document.querySelectorAll("table")[arguments[0]].rows[0].outerHTML'
    header = browser.execute_script(script, table)
    assert len(re.findall(r'aria-sort="(?:ascending|descending)"', header)) == 1


def test_a_click_sorts_words_as_words(browser):
    table, (name,) = tables_with(browser, ["name"])[0]
    before = column(browser, table, name)
    click(browser, table, name)
    assert column(browser, table, name) == sorted(before, key=str.lower) != before


def test_every_picture_has_size(browser):
    script = """
        return Array.from(document.querySelectorAll("figure svg"), (svg) => {
            const box = svg.getBoundingClientRect();
            return [box.width, box.height];
        });
    """
    sizes = browser.execute_script(script)
    assert len(sizes) >= 10
    assert min(min(size) for size in sizes) > 40


@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_never_scrolls_sideways(browser, width):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    shown, needed = browser.execute_script("return [innerWidth, document.body.scrollWidth]")
    assert shown == width
    assert needed <= width


def test_results_of_two_commits_are_refused_and_said_if_asked_for(folder, tmp_path, capsys):
    shutil.copytree(folder / "out" / "replay", tmp_path / "replay")
    path = next((tmp_path / "replay").rglob("fold0.json"))
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(record | {"provenance": {"commit": "aaaaaaaaaaaa"}}))
    words = ["report", "--published-runs", str(folder / "published.parquet")]
    words += ["--out", str(tmp_path)]
    assert main(words) == 2
    assert "results of 2 commits: aaaaaaaaaaaa; unknown" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()
    assert main([*words, "--mix-commits"]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "MIXED COMMITS, as asked for by --mix-commits: aaaaaaaaaaaa (1 results); unknown" in page
