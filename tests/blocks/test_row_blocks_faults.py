"""What can go wrong with row blocks: one clear error each, no half-fitted model, nothing left."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from block_rows import SMALL_CHUNKS, cut, labelled_rows, regression_rows
from scipy import sparse
from small_sizes import with_sizes

from rfrboost import RFRBoostClassifier, RFRBoostRegressor, RowBlocks
from rfrboost._numerics.sizes import Sizes

MODEL = {"n_layers": 2, "n_features": (20, 15), "random_state": 0}
#: seconds that a process may take which is done in two on an idle machine
PATIENCE = 600


def refused(blocks, match, error=ValueError, model=RFRBoostRegressor, automatic=False):
    """The fit fails with this message, and there is no model; ``automatic``: in both routes."""
    for settings in [MODEL, {"random_state": 0}][: 1 + automatic]:
        estimator = with_sizes(model(**settings), SMALL_CHUNKS)
        with pytest.raises(error, match=match) as caught:
            estimator.fit(blocks)
        assert "\n" not in str(caught.value)
        assert not hasattr(estimator, "network_")
        assert automatic or not hasattr(estimator, "n_features_in_")


def frames(n=200):
    X, y, _ = regression_rows(n)
    return pd.DataFrame(X, columns=list("abcd")).assign(y=y)


@pytest.fixture
def parts(tmp_path):
    """Two Parquet files."""
    paths = [tmp_path / "first.parquet", tmp_path / "second.parquet"]
    for path, frame in zip(paths, (frames()[:120], frames()[120:]), strict=True):
        frame.to_parquet(path, index=False)
    return paths


def test_a_generator_iterates_once_only():
    X, y, w = regression_rows()
    with pytest.raises(TypeError, match="generator iterates once only"):
        RowBlocks(block for block in cut(X, y, w, [10]))
    with pytest.raises(TypeError, match="iterable"):
        RowBlocks(7)


def test_blocks_that_are_not_pairs():
    X, y, _ = regression_rows()
    refused(RowBlocks([(X, y), X]), "Block 1 is not a tuple", automatic=True)
    refused(RowBlocks([(X,)]), "Block 0 is not a tuple .* of 1", automatic=True)
    refused(RowBlocks([]), "no rows", automatic=True)
    refused(RowBlocks([(X[:0], y[:0])]), "no rows", automatic=True)


def test_blocks_that_do_not_fit_the_first():
    X, y, w = regression_rows()
    refused(RowBlocks([(X, y), (X[:, :3], y)]), "Block 1: X has 3 columns, but 4", automatic=True)
    refused(
        RowBlocks([(X, y), (X, np.c_[y, y])]), "Block 1: y has 2 columns, but 1", automatic=True
    )
    refused(RowBlocks([(X, y), (X, y[:-1])]), "Block 1: X has 300 rows and y 299", automatic=True)
    refused(
        RowBlocks([(X, y, w), (X, y)]),
        "Block 1: all blocks must have weights, or none",
        automatic=True,
    )
    refused(RowBlocks([(X, y), (X[:, 0], y)]), "Block 1: X has 1 axes", automatic=True)
    frame = pd.DataFrame(X, columns=list("abcd"))
    later = frame.rename(columns={"c": "e"})
    refused(
        RowBlocks([(frame, y), (later, y)]),
        "Block 1: .* 'c' is missing, 'e' is new",
        automatic=True,
    )
    twice = pd.concat([frame, frame["c"]], axis=1)
    refused(RowBlocks([(frame, y), (twice, y)]), "Block 1: .* several columns named 'c'")


def test_numbers_that_are_not_finite():
    X, y, w = regression_rows()
    for place, match in (
        (0, "Block 1: Input X contains NaN"),
        (1, "Block 1: Input y contains NaN"),
    ):
        arrays = [X.copy(), y.copy(), w.copy()]
        arrays[place][200] = np.nan
        # Automatic fits encode missing values in X.
        refused(RowBlocks(cut(*arrays, [100])), match, automatic=place == 1)
    w[200] = -1
    refused(
        RowBlocks(cut(X, y, w, [100])), "Block 1: weights must be zero or positive", automatic=True
    )
    refused(
        RowBlocks(cut(X, y, np.zeros(300), [100])),
        "no rows|at least one non-zero number|zero for every row",
        automatic=True,
    )
    X[250, 2] = 1e100
    refused(RowBlocks(cut(X, y, None, [100])), "Column 2 .* 1e\\+100")
    text = pd.DataFrame(X, columns=list("abcd")).astype({"b": str})
    text["b"] = "oak"
    refused(RowBlocks([(text, y)]), "Block 0: could not convert string to float: 'oak'")


def test_targets_that_are_not_labels():
    X, y, w = labelled_rows(3)
    refused(
        RowBlocks([(X, np.full(300, "ash"))]), "one class", model=RFRBoostClassifier, automatic=True
    )
    y = y.astype(object)
    y[-1] = None
    blocks = RowBlocks(cut(X, y, w + 1, [100]))
    refused(blocks, "Block 1: y has missing labels", model=RFRBoostClassifier, automatic=True)
    refused(
        RowBlocks([(X, X[:, 0])]), "Block 0: .*continuous", model=RFRBoostClassifier, automatic=True
    )
    mixed = RowBlocks([(X, np.arange(300) % 2), (X, np.full(300, "ash"))])
    refused(
        mixed,
        "Block 1: y holds numbers in some rows and text in others",
        model=RFRBoostClassifier,
        automatic=True,
    )
    mixed = RowBlocks([(X, np.arange(300) % 2), (X, np.array([0, "1"] * 150, dtype=object))])
    refused(mixed, "Block 1: y holds numbers", model=RFRBoostClassifier, automatic=True)


def test_blocks_that_cannot_be_put_below_each_other():
    X, y, _ = regression_rows()
    with pytest.raises(ValueError, match="Block 1: X is an array, but a data frame of pandas"):
        RFRBoostRegressor().fit(RowBlocks([(pd.DataFrame(X), y), (X, y)]))
    with pytest.raises(ValueError, match="Block 1: X is a sparse matrix, but an array"):
        RFRBoostRegressor().fit(RowBlocks([(X, y), (sparse.coo_matrix(X), y)]))


#: what one block may hold in a column of numbers, and what is said of it
OTHERS = {
    "words": (["oak"] * 300, "Block 1: Column 'b' holds text .*, but numbers .*pandas.to_numeric"),
    "numbers as text": (["1.5"] * 300, "Block 1: Column 'b' holds text .*, but numbers"),
    "categories": (pd.Categorical([1, 2, 3] * 100), "Block 1: Column 'b' holds text or categories"),
    "dates": (pd.date_range("2024-01-01", periods=300), "Block 1: Column 'b' holds dates"),
}


@pytest.mark.parametrize("gathered", [300, 50_000])
@pytest.mark.parametrize("what", OTHERS)
def test_a_column_of_another_kind_in_one_block(what, gathered):
    """Put below each other, the numbers of the first block would become text, and be lost."""
    X, y, _ = regression_rows()
    frame = pd.DataFrame(X, columns=list("abcd"))
    cells, message = OTHERS[what]
    model = with_sizes(RFRBoostRegressor(random_state=0), Sizes(sampled_rows=gathered))
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(RowBlocks([(frame, y), (frame.assign(b=cells), y)]))
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "network_")


@pytest.mark.parametrize("gathered", [300, 50_000])
def test_columns_that_differ_in_type_alone(gathered):
    """Whole numbers, single precision, missing values only: the model of one table."""
    X, y, _ = regression_rows(400)
    X[:, 0] = np.round(X[:, 0], 1).astype(np.float32)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["word"] = np.where(X[:, 2] > 0, "up", "down")
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(400) % 50, unit="D")
    frame.loc[300:, ["word", "day", "d"]] = None
    parts = [frame[:150], frame[150:300], frame[300:], frame[:0]]
    parts[1] = parts[1].astype({"a": "float32", "b": "int64", "word": "category"})
    parts[2] = parts[2].assign(word=np.nan, day=np.nan, d=None)
    targets = [y[:150], y[150:300], y[300:], y[:0]]
    sizes = Sizes(sampled_rows=gathered, chunk_rows=128)
    settings = {"n_features": (20, 20), "n_bags": 2, "random_state": 0, "max_seconds": 1e6}
    fitted = [
        with_sizes(RFRBoostRegressor(**settings), sizes).fit(RowBlocks(blocks))
        for blocks in (list(zip(parts, targets, strict=True)), [(frame, y)])
    ]
    np.testing.assert_allclose(*(model.predict(frame) for model in fitted), atol=1e-6)


def test_what_blocks_cannot_be_fitted_with():
    X, y, w = regression_rows()
    blocks = RowBlocks([(X, y)])
    with pytest.raises(ValueError, match=r"call fit\(blocks\), without y"):
        RFRBoostRegressor(2).fit(blocks, y)
    with pytest.raises(ValueError, match="sample_splitting"):
        RFRBoostRegressor(2, sample_splitting=True).fit(blocks)
    with pytest.raises(ValueError, match="disk_budget"):
        RowBlocks([(X, y)], disk_budget=-1)
    with pytest.raises(ValueError, match="block_rows"):
        RowBlocks.from_arrays(X, y, block_rows=0)
    with pytest.raises(ValueError, match="differ in length"):
        RowBlocks.from_arrays(X, y, w[1:])
    with pytest.raises(ValueError, match="requires y to be passed"):
        RFRBoostRegressor(2).fit(X)


def test_a_file_without_a_column(parts):
    frames()[120:].drop(columns="c").to_parquet(parts[1], index=False)
    refused(RowBlocks.from_parquet(parts, target="y"), "second.parquet .* 'c' is missing")
    frames()[120:].assign(z=1.0).to_parquet(parts[1], index=False)
    refused(RowBlocks.from_parquet(parts, target="y"), "second.parquet .* 'z' is new")
    frames()[120:].astype({"c": str}).to_parquet(parts[1], index=False)
    refused(RowBlocks.from_parquet(parts, target="y"), "second.parquet: column 'c' is of type")


def test_files_that_are_not_there_or_not_parquet(parts, tmp_path):
    blocks = RowBlocks.from_parquet(parts, target="y")
    parts[1].write_bytes(b"PAR1 is how it begins")
    refused(blocks, "second.parquet cannot be read as Parquet", OSError)
    parts[1].unlink()
    refused(blocks, "no file .*second.parquet", FileNotFoundError)
    with pytest.raises(FileNotFoundError, match="no file"):
        RowBlocks.from_parquet(tmp_path / "none.parquet", target="y")
    with pytest.raises(ValueError, match="'z' is missing"):
        RowBlocks.from_parquet(parts[0], target="z")
    with pytest.raises(ValueError, match="cannot be two"):
        RowBlocks.from_parquet(parts[0], target="y", columns=["a", "y"])


def test_a_file_that_vanishes_half_way(parts):
    """With no room on disk, files are read in every pass; one is gone in the second."""

    class Vanishing:
        blocks = RowBlocks.from_parquet(parts, target="y")
        passes = 0

        def __iter__(self):
            self.passes += 1
            if self.passes == 2:
                parts[1].unlink()
            yield from self.blocks

    refused(RowBlocks(Vanishing(), disk_budget=0), "no file .*second.parquet", FileNotFoundError)


def test_blocks_that_change_between_two_passes():
    X, y, _ = regression_rows()

    class Shrinking:
        passes = 0

        def __iter__(self):
            self.passes += 1
            yield X[: 300 - self.passes], y[: 300 - self.passes]

    refused(RowBlocks(Shrinking(), disk_budget=0), "held 299 rows .* hold 298 now")


def test_a_disk_that_is_full_or_not_there(monkeypatch, tmp_path):
    X, y, w = regression_rows()
    refused(RowBlocks(cut(X, y, w, []), spill_dir=tmp_path / "none"), "cannot be made", OSError)
    written = []  # at least 12 times, and more often the longer computing takes beside writing

    def fail(*args):
        written.append(args)
        if len(written) > 8:
            raise OSError(28, "No space left on device")
        return pwrite(*args)

    pwrite = os.pwrite
    monkeypatch.setattr("os.pwrite", fail)
    blocks = RowBlocks(cut(X, y, w, []), spill_dir=tmp_path)
    refused(blocks, "cannot be written: No space left on device. Set spill_dir", OSError)
    assert list(tmp_path.iterdir()) == []


def test_without_positioned_files_nothing_is_written(monkeypatch):
    X, y, w = regression_rows()
    for name in ("os.pwrite", "os.preadv"):
        monkeypatch.delattr(name)
    blocks = RowBlocks(cut(X, y, w, [100]))
    model = with_sizes(RFRBoostRegressor(**MODEL), SMALL_CHUNKS).fit(blocks)
    expected = with_sizes(RFRBoostRegressor(**MODEL), SMALL_CHUNKS).fit(X, y, w)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


SCRIPT = """
import resource, sys
import numpy as np
from rfrboost import RFRBoostRegressor, RowBlocks

class Endless:
    def __iter__(self):
        rng = np.random.default_rng(0)
        for k in range({blocks}):
            X = rng.standard_normal((50_000, 5))
            yield X, X[:, 0]

{limit}
print("begun", flush=True)
model = RFRBoostRegressor({layers}, n_features=(16, 16))
try:
    model.fit(RowBlocks(Endless(), spill_dir=sys.argv[1]))
except OSError as error:
    print(error, hasattr(model, "network_"))
"""


def child(folder: Path, **values) -> subprocess.Popen:
    code = textwrap.dedent(SCRIPT).format(**{"limit": "", "layers": 2, **values})
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True
    )


def test_a_real_limit_of_file_size_is_one_clear_error(tmp_path):
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))"
    said = child(tmp_path, limit=limit, blocks=2).communicate(timeout=PATIENCE)[0]
    assert "cannot be written: File too large. Set spill_dir" in said
    assert said.rstrip().endswith("False")
    assert list(tmp_path.iterdir()) == []


def has_open_file(pid: int, folder: Path) -> bool:
    """Whether a process has a file in this folder open, with or without a name."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed in the meantime
            if str(folder) in os.readlink(link):
                return True
    return False


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to see open files")
def test_a_killed_fit_leaves_no_files(tmp_path):
    process = child(tmp_path, blocks=4, layers=10_000)
    assert process.stdout.readline() == "begun\n"
    deadline = time.monotonic() + PATIENCE
    while not has_open_file(process.pid, tmp_path):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n_layers", [1, "auto"])
@pytest.mark.parametrize("part", ["X", "y", "w"])
def test_numbers_that_no_float_can_hold(part, n_layers):
    X = np.random.default_rng(0).normal(size=(60, 2))
    rows = {"X": X.astype(object), "y": X[:, 0].astype(object), "w": np.ones(60, object)}
    rows[part][(3,) * rows[part].ndim if part != "X" else (3, 1)] = 10**400
    blocks = RowBlocks([(X, X[:, 0], np.ones(60)), (rows["X"], rows["y"], rows["w"])])
    with pytest.raises(ValueError, match="no float can hold"):
        RFRBoostRegressor(n_layers, random_state=0).fit(blocks)


@pytest.mark.parametrize("weight", [1.7e308, 1e300, 1e-300, 5e-324])
def test_weights_of_any_size(weight):
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = X[:, 0] ** 2
    w = np.full(60, weight)
    model = RFRBoostRegressor(2, n_features=10, random_state=0)
    expected = model.fit(X, y).predict(X)
    found = model.fit(RowBlocks([(X[:60], y[:60], w), (X[60:], y[60:], w)])).predict(X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
