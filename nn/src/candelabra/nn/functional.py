"""The functions of networks, with the names and signatures of ``torch.nn.functional``.

The names come from the registry of public names; ``__all__`` is computed from it.
"""

from candelabra import cosine_similarity as cosine_similarity
from candelabra import pairwise_distance as pairwise_distance
from candelabra import pdist as pdist
from candelabra import sigmoid as sigmoid
from candelabra import tanh as tanh
from candelabra.library import members
from candelabra.nn._functional.grid_modes import GRID_SAMPLE_INTERPOLATION_MODES as GRID_SAMPLE_INTERPOLATION_MODES
from candelabra.nn._functional.grid_modes import GRID_SAMPLE_PADDING_MODES as GRID_SAMPLE_PADDING_MODES

_also = (
    "GRID_SAMPLE_INTERPOLATION_MODES", "GRID_SAMPLE_PADDING_MODES", "cosine_similarity", "pairwise_distance", "pdist",
    "sigmoid", "tanh",
)  # fmt: skip
__getattr__, __dir__ = members("nn.functional")
