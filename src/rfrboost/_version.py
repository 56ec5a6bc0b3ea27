"""The version, in a module of its own so that model files can name it."""

__version__ = "0.2.0"
