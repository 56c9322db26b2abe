"""The version of the package, in a file that every module may import."""

__version__ = "0.1.0"
