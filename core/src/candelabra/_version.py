"""The version, in a separate file that the build reads too."""

__version__ = "0.1.0.dev0"
