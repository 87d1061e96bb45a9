"""The functions of networks, with the names and signatures of ``torch.nn.functional``.

The names come from the registry of public names; ``__all__`` is computed from it.
"""

from candelabra.library import members
from candelabra.nn._functional.grid_modes import GRID_SAMPLE_INTERPOLATION_MODES as GRID_SAMPLE_INTERPOLATION_MODES
from candelabra.nn._functional.grid_modes import GRID_SAMPLE_PADDING_MODES as GRID_SAMPLE_PADDING_MODES
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:  # found at the first use: these imports would declare the operators
    from candelabra import cosine_similarity as cosine_similarity
    from candelabra import pairwise_distance as pairwise_distance
    from candelabra import pdist as pdist
    from candelabra import sigmoid as sigmoid
    from candelabra import tanh as tanh

_also = (
    "GRID_SAMPLE_INTERPOLATION_MODES", "GRID_SAMPLE_PADDING_MODES", "cosine_similarity", "pairwise_distance", "pdist",
    "sigmoid", "tanh",
)  # fmt: skip
# Programs with attention, losses and functions of their own import these from torch.nn.functional.
_unlisted = {
    "_Reduction": "candelabra.nn:_reduction",
    **{name: f"candelabra.nn._functional.internal_names:{name}" for name in (
        "_canonical_mask", "_in_projection", "_in_projection_packed", "_none_or_dtype",
    )},
    **{name: f"candelabra.nn.modules.utils:{name}" for name in ("_list_with_default", "_pair", "_single", "_triple")},
    **{name: f"candelabra.overrides:{name}" for name in (
        "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    )},
}  # fmt: skip
__getattr__, __dir__ = members("nn.functional")
