"""Tables that are read whole, value by value: JSON, JSON lines and Excel workbooks.

A column becomes numbers, truth values or times if all its values are; otherwise its values become
text, which may still be recognised as numbers or dates, as in a table of delimited text.
"""

import datetime
import io
import json
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any, BinaryIO

import pyarrow as pa

from rfrboost.cli.console import CommandError, counted, printable, say

#: what the values of a column may be, and Arrow's type for them
TYPES: dict[tuple[type, ...], pa.DataType] = {
    (bool,): pa.bool_(),
    (int, float): pa.float64(),
    (datetime.datetime,): pa.timestamp("us"),
}


def table_of_columns(columns: dict[str, list[Any]], name: str) -> pa.Table:
    """A table of columns of Python values."""
    arrays = [column(values, title, name) for title, values in columns.items()]
    return pa.Table.from_arrays(arrays, names=list(columns))


def column(values: list[Any], title: str, name: str) -> pa.Array:
    """One column; values of several kinds become text."""
    kinds = {type(value) for value in values if value is not None}
    for types, arrow_type in TYPES.items():
        if kinds and kinds <= set(types):
            return pa.array(values, arrow_type)
    if kinds & {list, dict}:
        raise CommandError(
            f"Column {printable(title)!r} of {name} contains lists or objects; a table has one "
            "value in each cell."
        )
    return pa.array([None if value is None else as_text(value) for value in values], pa.string())


def as_text(value: Any) -> str:
    """A value as delimited text would spell it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# JSON.


def json_table(stream: io.BufferedReader, name: str) -> pa.Table:
    """The table in a JSON file: a list of rows, an object of columns, or a row on each line."""
    try:
        text = stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} is not UTF-8 text, so it is not JSON.") from error
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        document = list(json_lines(text, name))
    if isinstance(document, dict) and document and is_columns(document):
        columns = {
            title: list(values.values() if isinstance(values, dict) else values)
            for title, values in document.items()
        }
        if len({len(values) for values in columns.values()}) > 1:
            raise CommandError(f"The columns in {name} have different lengths.")
        return table_of_columns(columns, name)
    rows = [document] if isinstance(document, dict) else document
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CommandError(
            f"{name} is JSON, but not a table: a list of objects, one object per line, or an "
            "object with a list for each column."
        )
    titles = dict.fromkeys(title for row in rows for title in row)
    if not titles:
        raise CommandError(f"{name} is empty.")
    return table_of_columns({t: [row.get(t) for row in rows] for t in titles}, name)


def is_columns(document: dict[str, Any]) -> bool:
    """Whether an object has a list for each column, or an object by row names as pandas writes."""
    return all(isinstance(values, (list, dict)) for values in document.values())


def json_lines(text: str, name: str) -> Iterator[Any]:
    """The values of JSON lines; an error names the first line that is not JSON."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise CommandError(f"Line {number:,} of {name} is not JSON.") from error


# Excel.


def workbook_table(file: str | BinaryIO, name: str) -> pa.Table:
    """The first sheet of an Excel workbook; its first row that is not empty names the columns."""
    if find_spec("openpyxl") is None:
        raise CommandError(
            f"{name} is an Excel workbook, which needs the package openpyxl: pip install openpyxl, "
            "or save the sheet as CSV."
        )
    import openpyxl

    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    try:
        sheets = book.worksheets
        if len(sheets) > 1:
            say(
                f"Read {name}: the sheet {printable(sheets[0].title)!r}, the first of "
                f"{counted(len(sheets), 'sheet')}."
            )
        rows = [row for row in sheets[0].iter_rows(values_only=True) if any_value(row)]
    finally:
        book.close()
    if not rows:
        raise CommandError(f"{name} is empty.")
    titles = ["" if title is None else as_text(title).strip() for title in rows[0]]
    while titles and not titles[-1]:
        titles.pop()
    if "" in titles:
        raise CommandError(f"Column {titles.index('') + 1} of {name} has no name.")
    columns = list(zip_longest(*rows[1:])) or [()] * len(titles)
    arrays = [column(list(v), t, name) for t, v in zip(titles, columns, strict=False)]
    return pa.Table.from_arrays(arrays, names=titles)


def any_value(row: Iterable[Any]) -> bool:
    """Whether a row of a sheet has a value."""
    return any(value is not None for value in row)
