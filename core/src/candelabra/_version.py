"""The version, in a file of its own that the build reads too."""

__version__ = "0.1.0.dev0"
