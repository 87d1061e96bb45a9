"""The modes of ``grid_sample`` and their numbers, which are public in :mod:`candelabra.nn.functional`."""

from __future__ import annotations

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}
