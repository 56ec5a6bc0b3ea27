"""What the project's own files say about versions, hashes and licences is the same everywhere."""

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import licences  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
#: extras of people who work on the library, whose tools are the newest
WITHOUT_FLOORS = {"docs", "lint", "release"}
#: the extras whose floors the page for users names
USERS = ("files", "fast", "plot", "onnx", "parquet", "cli", "dask", "torch")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def normal(name: str) -> str:
    """A package's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(name: str) -> dict[str, str]:
    """Packages and versions of a file of requirements."""
    return dict(re.findall(r"^([\w.-]+)==([^\s\\]+)", text_of(name), re.MULTILINE))


def floors_of(entries: list[str]) -> dict[str, str]:
    """Packages and oldest versions of requirements, all of which must have one."""
    outside = [entry for entry in entries if not entry.startswith("rfrboost[")]
    return dict(re.fullmatch(r"([\w-]+)(?:\[.+\])?>=([\d.]+)", entry).groups() for entry in outside)


def test_floors_are_those_that_are_tested():
    groups = [PROJECT["dependencies"], *(EXTRAS[name] for name in EXTRAS.keys() - WITHOUT_FLOORS)]
    everywhere = [item for group in groups for item in floors_of(group).items()]
    assert len(dict(everywhere)) == len(set(everywhere)), "one floor for a package"
    assert pins("floors.txt") == dict(everywhere)


def test_floors_are_those_that_are_promised():
    promised = " ".join(text_of("docs/policy.md").split()).lower()
    shown = floors_of([*PROJECT["dependencies"], *(e for name in USERS for e in EXTRAS[name])])
    for name, oldest in shown.items():
        assert re.search(rf"\b{name}\b[^.;]* {re.escape(oldest)}", promised), name
    assert PROJECT["requires-python"] == ">=3.11"
    assert "python 3.11 and later" in promised


def test_the_conda_recipe_has_the_same_requirements():
    run = text_of("conda.recipe/meta.yaml").partition("  run:\n")[2].partition("\n\n")[0]
    listed = {line.strip().removeprefix("- ").replace(" ", "") for line in run.splitlines()}
    assert listed == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}


def test_the_lock_has_every_package_of_the_tests_and_a_hash_for_each():
    blocks = re.findall(r"^\w.*(?:\n .+)*", text_of("requirements.lock"), re.MULTILINE)
    assert len(blocks) == len(pins("requirements.lock"))
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", block) for block in blocks)
    assert "://" not in text_of("requirements.lock"), "files are found by their hashes alone"
    locked = {normal(name) for name in pins("requirements.lock")}
    wanted = [*PROJECT["dependencies"]]
    todo = ["test"]
    while todo:
        for entry in EXTRAS[todo.pop()]:
            inner = re.fullmatch(r"rfrboost\[(.+)\]", entry)
            todo += inner[1].split(",") if inner else []
            wanted += [] if inner else [entry]
    assert {normal(licences.name_of(entry)) for entry in wanted} <= locked


def test_actions_are_pinned_to_commits():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"uses: (\S+)(.*)", path.read_text(encoding="utf-8"))
        assert used
        for action, comment in used:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
            assert re.fullmatch(r" # v[\d.]+", comment), "the version that a commit belongs to"


def test_ci_tests_the_oldest_the_newest_and_the_locked_versions():
    runs = re.findall(r"- run: make (\S+)", text_of(".github/workflows/ci.yml"))
    wanted = {"test-oldest", "test-newest", "test-locked", "package", "audit", "fuzz", "docs"}
    assert wanted <= set(runs)
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), re.MULTILINE))
    assert set(runs) <= targets


def test_the_page_of_licences_has_every_package():
    needed, optional = licences.requirements()
    assert list(licences.listed()) == [*needed, *optional]


@pytest.mark.parametrize("name", ["numpy", "scipy", "scikit-learn", "threadpoolctl", "pandas"])
def test_licences_are_those_that_packages_declare(name):
    try:
        installed = version(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    if pins("requirements.lock").get(name) != installed:
        pytest.skip(f"the page was made with another version of {name}")
    assert licences.licence(name, {}) == licences.listed()[name]
