"""One module for each command of ``python -m experiments``; see ``experiments.__main__``."""
