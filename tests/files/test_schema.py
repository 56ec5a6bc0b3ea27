"""The schema language: tags instead of class names, and alternatives that exclude each other."""

from dataclasses import dataclass
from pathlib import Path

import pytest

import rfrboost
from rfrboost import ModelFileError
from rfrboost._files import network, tables
from rfrboost._files.schema import COUNT, TEXT, Kind, ListOf, OneOf, OrNone

FORMAT_1 = Path(__file__).parent.parent / "data" / "format-1"

#: files with these tags exist: none may be changed or taken away, whatever the classes are called
TAGS_OF_FORMAT_1 = {
    *("BinaryLogLoss", "Bumps", "Calibration", "DateColumn", "DenseFeatures", "DiagonalStep"),
    *("Distances", "Encoder", "Head", "Huber", "Layer", "LayerFeatures", "Leaf", "LevelColumn"),
    *("LocalSums", "LowRankStep", "Network", "NumberColumns", "Poisson", "Quantile", "Quantiles"),
    *("Scaling", "SoftmaxLogLoss", "Splits", "SquaredError", "Standardizer", "TargetScale"),
}

#: tags that were added since; a version that does not know one refuses the file
ADDED_TAGS = {"SpelledColumn", "Spelling", "TextColumn", "Forest", "LabelsLogLoss"}


@dataclass(frozen=True)
class Circle:
    radius: int


@dataclass(frozen=True)
class Square:
    side: int


#: an object of this class was called Circle when files were first written
@dataclass(frozen=True)
class Disc:
    radius: int


class Bigger(Circle):
    pass


def always(shape, *sizes):
    return True


SHAPE = OneOf(
    Kind("Circle", Circle, {"radius": COUNT}, always),
    Kind("Square", Square, {"side": COUNT}, lambda square, limit: square.side <= limit),
)


def test_tags_of_format_1_stay_what_they_are():
    schemas = [s for module in (network, tables) for s in vars(module).values()]
    found = {tag for schema in schemas if isinstance(schema, OneOf) for tag in schema.by_tag}
    assert found == TAGS_OF_FORMAT_1 | ADDED_TAGS


def test_a_class_may_be_renamed():
    renamed = OneOf(Kind("Circle", Disc, {"radius": COUNT}, always))
    state = SHAPE.write(Circle(3), "shape")
    assert state == {"kind": "Circle", "radius": 3}
    assert renamed.read(state, "shape") == Disc(3)
    assert renamed.write(Disc(3), "shape") == state


def test_two_classes_of_one_name_are_two_kinds():
    other = type("Circle", (), {})
    assert SHAPE.holds(Circle(1))
    assert not SHAPE.holds(other())
    with pytest.raises(ModelFileError, match="shape is of the class Circle"):
        SHAPE.write(other(), "shape")


def test_objects_of_derived_classes_are_refused():
    with pytest.raises(ModelFileError, match="shape is of the class Bigger"):
        SHAPE.write(Bigger(1), "shape")


def test_a_tag_or_a_class_belongs_to_one_kind_only():
    circle = Kind("Circle", Circle, {"radius": COUNT}, always)
    for second in (
        Kind("Circle", Square, {"side": COUNT}, always),
        Kind("Round", Circle, {"radius": COUNT}, always),
    ):
        with pytest.raises(ValueError, match="no other kind has"):
            OneOf(circle, second)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"radius": 1}, "should be of the kind Circle or Square"),
        ({"kind": "Disc", "radius": 1}, "should be of the kind Circle or Square"),
        ({"kind": ["Circle"], "radius": 1}, "should be of the kind Circle or Square"),
        ({"kind": "Circle"}, "should have the entries radius"),
        ({"kind": "Circle", "radius": 0}, "radius should be a whole number above 0"),
        ([], "should be of the kind"),
    ],
)
def test_states_that_no_object_has_are_refused(state, reason):
    with pytest.raises(ModelFileError, match=f"^shape.*{reason}"):
        SHAPE.read(state, "shape")


def test_each_kind_judges_sizes_by_its_own_rule():
    assert SHAPE.fits(Circle(9), 3)
    assert SHAPE.fits(Square(3), 3)
    assert not SHAPE.fits(Square(4), 3)


def test_lists_and_none():
    names = OrNone(ListOf(TEXT))
    assert names.read(names.write(["a", "b"], "names"), "names") == ("a", "b")
    assert names.read(names.write(None, "names"), "names") is None
    with pytest.raises(ModelFileError, match=r"names\[1\] should be text"):
        names.read(["a", 1], "names")


def test_files_of_format_1_are_written_again_as_they_are(tmp_path):
    """The state of every old file, tags included, is the one that is written today."""
    for path in sorted(FORMAT_1.glob("*.rfrboost")):
        rfrboost.load(path).save(tmp_path / path.name)
        old, new = (rfrboost.file_info(p) for p in (path, tmp_path / path.name))
        assert old["arrays"].items() <= new["arrays"].items(), path.name
        known = {name: new["fitted"][name] for name in old["fitted"]}
        # Seconds are not saved any more, so that equal fits write equal files.
        for record in (*old["fitted"].get("history", ()), *known.get("history", ())):
            record.pop("seconds", None)
        assert_within(old["fitted"], known, path.name)


def assert_within(old, new, where):
    """What an old file says is there, unchanged; a newer one may say more."""
    if isinstance(old, dict):
        for key, value in old.items():
            assert_within(value, new[key], f"{where}.{key}")
    else:
        assert old == new, where
