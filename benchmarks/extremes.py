"""Times, memory and scores of tables that are far wider, taller or odder than usual.

python -m benchmarks.extremes [--only TEXT] [--again] [--out FILE]

As ``benchmarks.limits``, with the other list of ``benchmarks.limit_cases``; the whole run takes
about 5 minutes on an idle machine of two cores.
"""

from benchmarks.limits import run


def main() -> None:
    """The table of extremes."""
    run("extremes", __doc__ or "")


if __name__ == "__main__":
    main()
