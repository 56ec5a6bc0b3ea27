"""Run the notebooks of examples/notebooks and write their outputs: ``make notebooks``.

    python tools/notebooks.py [NAME ...]

Of a notebook's metadata only the kernel is kept, so that a run on another machine changes nothing
but outputs. A notebook whose cell raises is left as it was.
"""

import sys
from pathlib import Path

import nbclient
import nbformat
from jupyter_client.manager import KernelManager

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
#: seconds until a kernel that does not start, or a cell, has failed; a busy machine may take long
PATIENCE = 3600
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(book: nbformat.NotebookNode, kernel: KernelManager | None = None) -> None:
    """Execute the cells of a notebook from top to bottom, in the folder of notebooks.

    Without a kernel, in one of its own; a given kernel is started if it is not running, and left.
    """
    client = nbclient.NotebookClient(
        book,
        km=kernel,
        timeout=PATIENCE,
        startup_timeout=PATIENCE,
        kernel_name="python3",
        coalesce_streams=True,
        record_timing=False,
        resources={"metadata": {"path": str(FOLDER)}},
    )
    try:
        client.execute()
    finally:
        if kernel is not None and client.kc is not None:
            client.kc.stop_channels()


def run(path: Path) -> None:
    """Execute a notebook, and write it back."""
    book = nbformat.read(path, as_version=4)
    execute(book)
    book.metadata = nbformat.from_dict(METADATA)
    nbformat.write(book, path)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        run(FOLDER / f"{name}.ipynb")
        print(name)
