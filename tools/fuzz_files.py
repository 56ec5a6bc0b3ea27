"""Mutated model files: each is refused with a ModelFileError or loads, quickly, in little memory.

    python -m tools.fuzz_files            # 2,000 files, under a minute
    python -m tools.fuzz_files 20000 --seed 1

Every kind of model is mutated in turn: all files of format 1 in ``tests/data``, and new ones with
tables, many classes and, in format 2, lists of text. Half of the mutants have some bytes changed,
cut out or repeated, as accidents do. The others are forged: an entry of the header or an array is
changed and the checksum computed anew. Each is loaded under two limits, of processor time and of
memory beyond that of the process before. Any mutant that passes a limit, or raises anything but
ModelFileError, is written to the folder ``fuzz-findings`` and named; the exit code is then 1.

On Linux the system also refuses this process much more memory than that, so that an allocation that
Python does not count cannot go unnoticed.
"""

import argparse
import copy
import json
import sys
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator, default_rng
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import rfrboost
from rfrboost._files import container
from rfrboost._files.io import from_state, to_state

# Seconds of processor time for a load. Refusing takes milliseconds.
MOST_SECONDS = 1.0
# Bytes that a load may allocate, 256 MB; the files have less than 0.2 MB.
MOST_MEMORY = 2**28
# Bytes of address space that the whole process may take beyond what it has when loading begins. A
# larger allocation is refused by the system and ends in a MemoryError.
MOST_ADDRESSES = 2**30

FIXTURES = Path(__file__).parent.parent / "tests" / "data" / "format-1"
FINDINGS = Path("fuzz-findings")

#: values that replace entries of a document
NASTY: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 3, 2**31, 2**53 - 1, 10**30, -(10**400), 0.5, 1e308, 5e-324, -0.0),
    *(
        "",
        "x",
        "os.system",
        "tanh",
        "auto",
        "DenseFeatures",
        "SquaredError",
        "\ud800",
        "k" * 10_000,
    ),
    *([], [1], [[]], [0] * 20_000, {}, {"array": "x"}, {"texts": "x"}, {"kind": "Head"}),
)


@dataclass(frozen=True)
class Findings:
    """What happened to the mutants."""

    outcomes: Counter[str]
    faults: list[str]
    slowest: float
    largest: int


def originals() -> dict[str, bytes]:
    """Model files by name: the fixtures, and new ones of kinds that they lack."""
    files = {path.stem: path.read_bytes() for path in sorted(FIXTURES.glob("*.rfrboost"))}
    rng = default_rng(0)
    x = rng.normal(size=90)
    dates = np.datetime64("2024-01-01") + np.arange(90)
    table = pd.DataFrame({"x": x, "word": [f"w{k % 20}" for k in range(90)], "day": dates})
    single: dict[str, Any] = {"n_layers": 1, "n_features": 4, "random_state": 0}
    models = {
        "table": rfrboost.RFRBoostRegressor(random_state=0).fit(table, x),
        "labels": rfrboost.RFRBoostClassifier(random_state=0).fit(table, table["word"].str[:2]),
        "many classes": rfrboost.RFRBoostClassifier(**single).fit(x[:, None], np.arange(90) % 30),
        "poisson": rfrboost.RFRBoostRegressor(**single, loss="poisson").fit(x[:, None], np.exp(x)),
        "rfnn": rfrboost.RFNNRegressor(8, random_state=0).fit(np.column_stack([x, x**2]), x),
    }
    for name, model in models.items():
        files[f"new {name}"] = container.pack(to_state(model), rfrboost.__version__)
        files[f"texts {name}"] = packed_texts(to_state(model))
    return files


def packed_texts(state: dict[str, Any]) -> bytes:
    """A file of format 2 in which lists of text of any length are arrays."""
    usual = container.LONG_TEXT
    container.LONG_TEXT = 1
    try:
        return container.pack_as(container.NEWER_FORMAT, state, "0")
    finally:
        container.LONG_TEXT = usual


# Mutations


def changed_bytes(data: bytes, rng: Generator) -> bytes:
    """One to eight bytes changed, in the header or anywhere."""
    mutant = bytearray(data)
    end = rng.choice([8 + container.header_size(data), len(data)])
    for place in rng.integers(end, size=rng.integers(1, 9)):
        mutant[place] = rng.integers(256)
    return bytes(mutant)


def cut_bytes(data: bytes, rng: Generator) -> bytes:
    """A piece cut out, repeated, or everything after a place dropped."""
    begin, end = np.sort(rng.integers(len(data), size=2)).tolist()
    pieces = (data[:begin] + data[end:], data[:end] + data[begin:], data[:begin])
    return pieces[rng.integers(3)]


def forged(data: bytes, rng: Generator) -> bytes:
    """One to three entries of the document or its arrays changed, and a right checksum."""
    end = 8 + container.header_size(data)
    document = json.loads(json.loads(data[8:end])["__metadata__"]["rfrboost"])
    arrays = load_arrays(data)
    del document["checksum"]
    for _ in range(rng.integers(1, 4)):
        (forge_entry if rng.random() < 0.7 or not arrays else forge_array)(document, arrays, rng)
    document["checksum"] = container.checksum(document, arrays)
    return bytes(save_arrays(arrays, {"rfrboost": container.to_json(document)}))


def forge_entry(document: dict[str, Any], arrays: container.Arrays, rng: Generator) -> None:
    """Replace an entry of the document by something else, delete it, or copy another one to it."""
    places = list(entries(document))
    holder, key = places[rng.integers(len(places))]
    what = rng.integers(4)
    if what < 2:
        holder[key] = copy.deepcopy(NASTY[rng.integers(len(NASTY))])
    elif what == 2:
        del holder[key]
    else:
        other, other_key = places[rng.integers(len(places))]
        holder[key] = copy.deepcopy(other[other_key])


def forge_array(document: dict[str, Any], arrays: container.Arrays, rng: Generator) -> None:
    """Change the shape, the type or a number of an array."""
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name].copy()
    what = rng.integers(4)
    if what == 0:
        shapes = (array.T, array[:-1], array[..., None], array.ravel(), np.repeat(array, 2, axis=0))
        array = shapes[rng.integers(len(shapes))]
    elif what == 1:
        array = array.astype(["float32", "float64", "uint8", "int64"][rng.integers(4)])
    elif array.size:
        finite = [0.0, -1.0, 255.0]
        nasty = [*finite, np.nan, np.inf, 1e308] if array.dtype.kind == "f" else finite
        value = np.float64(nasty[rng.integers(len(nasty))])
        array.flat[rng.integers(array.size)] = value.astype(array.dtype)
    arrays[name] = np.ascontiguousarray(array)


def entries(state: Any) -> Iterator[tuple[Any, Any]]:
    """Every dict or list in a document, with each of its keys."""
    for key, entry in list(state.items() if isinstance(state, dict) else enumerate(state)):
        yield state, key
        if isinstance(entry, dict | list):
            yield from entries(entry)


MUTATIONS: tuple[Callable[[bytes, Generator], bytes], ...] = (
    changed_bytes,
    forged,
    cut_bytes,
    forged,
)


# Loading


def outcome(data: bytes) -> tuple[str, float, int]:
    """What loading does, with its processor seconds and its bytes of memory at most."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    began = time.process_time()
    try:
        from_state(container.unpack(data))
        found = "loaded"
    except rfrboost.ModelFileError:
        found = "refused"
    except (RecursionError, MemoryError) as error:
        # ``load`` turns these into a ModelFileError; they may not take long to be noticed.
        found = f"refused by a {type(error).__name__}"
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - began
    _, peak = tracemalloc.get_traced_memory()
    return found, seconds, peak - before


def fuzz(n_files: int, seed: int) -> Findings:
    """Load this many mutants."""
    files = originals()
    names = list(files)
    outcomes: Counter[str] = Counter()
    faults: list[str] = []
    slowest = 0.0
    largest = 0
    tracemalloc.start()
    try:
        for k in range(n_files):
            name = names[k % len(names)]
            rng = default_rng([seed, k])
            mutate = MUTATIONS[k // len(names) % len(MUTATIONS)]
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                data = mutate(files[name], rng)
                found, seconds, memory = outcome(data)
            slowest = max(slowest, seconds)
            largest = max(largest, memory)
            fault = found != "loaded" and not found.startswith("refused")
            outcomes["fault" if fault else found] += 1
            if fault or seconds > MOST_SECONDS or memory > MOST_MEMORY:
                FINDINGS.mkdir(exist_ok=True)
                path = FINDINGS / f"{seed}-{k}.rfrboost"
                path.write_bytes(data)
                what = f"{mutate.__name__} of {name}: {found[:200]}"
                faults.append(f"{path} ({what}; {seconds:.2f} s, {memory / 1e6:.0f} MB)")
    finally:
        tracemalloc.stop()
    return Findings(outcomes, faults, slowest, largest)


def limit_memory() -> None:
    """Let the system refuse large allocations of this process, on Linux."""
    if sys.platform != "linux":
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MOST_ADDRESSES
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def main() -> int:
    """Fuzz and report."""
    parser = argparse.ArgumentParser(description="Load mutated model files.")
    parser.add_argument("files", type=int, nargs="?", default=2000, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    originals()  # Models are fitted before memory is limited.
    limit_memory()
    began = time.process_time()
    findings = fuzz(arguments.files, arguments.seed)
    for fault in findings.faults:
        print(fault)
    counts = ", ".join(f"{count:,} {what}" for what, count in sorted(findings.outcomes.items()))
    print(
        f"{arguments.files:,} files: {counts}; slowest {findings.slowest:.3f} s, most memory "
        f"{findings.largest / 1e6:.1f} MB, {time.process_time() - began:.0f} s in all."
    )
    return 1 if findings.faults else 0


if __name__ == "__main__":
    sys.exit(main())
