"""python -m benchmarks.fingerprints --against COMMIT [--only TEXT] [--write FILE]

Fits the same cases with the library of the working tree and with that of COMMIT, one after the
other, each in a process of its own with one thread, and compares all answers bit by bit. Prints a
line for each case and ends with exit code 1 if any case differs. A case that fails is not equal.
"""

import argparse
import pickle
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.fingerprints.answers import Answers, answers_of, differences, fingerprint
from benchmarks.fingerprints.cases import Case, FileCase, all_cases
from benchmarks.fingerprints.tables import AS_NUMBERS, data_folder, real_tables
from benchmarks.sources import HERE, check_imported_from, description, sources_at, start

Found = Answers | str


def chosen_cases(only: str) -> dict[int, Case | FileCase]:
    """The cases whose name contains a text, by their number; all for an empty text."""
    cases = enumerate(all_cases())
    return {number: case for number, case in cases if only.lower() in case.name.lower()}


def answer_all(numbers: list[int], folder: Path) -> None:
    """Fit the cases of these numbers in this process; write the answers, or the error, of each."""
    cases = all_cases()
    for number in numbers:
        began = perf_counter()
        found: Found
        try:
            found = answers_of(*cases[number].answering())
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        with (folder / f"{number}.pickle").open("wb") as file:
            pickle.dump(found, file)
        print(f"{number} {perf_counter() - began:.1f}", flush=True)


def answered(sources: Path, numbers: Iterable[int], folder: Path) -> Iterator[tuple[int, str]]:
    """Each case's number and seconds, as soon as a process with these sources is done with it.

    A case that the process did not come to, because it crashed, is named all the same.
    """
    folder.mkdir()
    left = list(numbers)
    arguments = ["--answer", str(sources), str(folder), *map(str, left)]
    with start(sources, "benchmarks.fingerprints", arguments, threads=1) as process:
        for line in process.stdout or ():
            number, seconds = line.split()
            left.remove(int(number))
            yield int(number), seconds
    for number in left:
        yield number, "0.0"


def read(folder: Path, number: int) -> Found:
    """The answers of a case, or why there are none."""
    path = folder / f"{number}.pickle"
    return pickle.loads(path.read_bytes()) if path.exists() else "the process ended early"


def verdict(old: Found, new: Found) -> list[str]:
    """What is wrong with a case; nothing if both commits answer alike."""
    failed = [
        f"fails on {where}: {found}"
        for where, found in (("the commit", old), ("the working tree", new))
        if isinstance(found, str)
    ]
    if isinstance(old, str) or isinstance(new, str):
        return failed
    return differences(old, new)


def summary(equal: int, n_cases: int, n_tables: int) -> str:
    """The last line."""
    return f"{equal} of {n_cases} cases equal to the bit on {n_tables} table{'s' * (n_tables != 1)}"


def compare(commit: str, cases: dict[int, Case | FileCase]) -> Iterator[tuple[str, bool]]:
    """The lines of the report as they come, and whether each says that something is equal."""
    equal = 0
    with sources_at(commit) as there, TemporaryDirectory() as temporary:
        old_folder = Path(temporary) / "old"
        new_folder = Path(temporary) / "new"
        for done, _ in enumerate(answered(there, cases, old_folder), start=1):
            print(f"\r{commit}: {done} of {len(cases)}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        for number, seconds in answered(HERE, cases, new_folder):
            new = read(new_folder, number)
            wrong = verdict(read(old_folder, number), new)
            equal += not wrong
            short = "" if isinstance(new, str) else fingerprint(new)[:12]
            words = "; ".join(wrong) or f"equal {short} ({seconds} s)"
            yield f"{cases[number].name}: {words}", not wrong
    n_tables = len({case.table.removesuffix(AS_NUMBERS) for case in cases.values()})
    yield summary(equal, len(cases), n_tables), equal == len(cases)


def main() -> None:
    """Compare, or be one of the two processes that are compared."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fingerprints",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--against", metavar="COMMIT", default="HEAD", help="default: HEAD")
    parser.add_argument("--only", metavar="TEXT", default="", help="cases whose name contains it")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the report to a file too")
    parser.add_argument("--answer", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer:
        sources, folder, *numbers = arguments.answer
        check_imported_from(Path(sources))
        answer_all([int(number) for number in numbers], Path(folder))
        return
    cases = chosen_cases(arguments.only)
    if not cases:
        sys.exit(f"No case has {arguments.only!r} in its name.")
    lines = [description(arguments.against)]
    if not real_tables():
        lines.append(f"No real tables in {data_folder()}: set RFRBOOST_DATA to have them.")
    print(*lines, sep="\n", flush=True)
    all_equal = True
    for line, equal in compare(arguments.against, cases):
        print(line, flush=True)
        lines.append(line)
        all_equal = all_equal and equal
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(0 if all_equal else 1)


if __name__ == "__main__":
    main()
