"""The functions of networks, with the names and signatures of ``torch.nn.functional``.

The names come from the registry of public names; ``__all__`` is computed from it.
"""

from candelabra.library import members
from candelabra.nn._functional.grid_modes import GRID_SAMPLE_INTERPOLATION_MODES as GRID_SAMPLE_INTERPOLATION_MODES
from candelabra.nn._functional.grid_modes import GRID_SAMPLE_PADDING_MODES as GRID_SAMPLE_PADDING_MODES
from candelabra.nn._functional.internal_names import _canonical_mask as _canonical_mask
from candelabra.nn._functional.internal_names import _in_projection as _in_projection
from candelabra.nn._functional.internal_names import _in_projection_packed as _in_projection_packed
from candelabra.nn._functional.internal_names import _none_or_dtype as _none_or_dtype
from candelabra.overrides import handle_torch_function as handle_torch_function
from candelabra.overrides import has_torch_function as has_torch_function
from candelabra.overrides import has_torch_function_unary as has_torch_function_unary
from candelabra.overrides import has_torch_function_variadic as has_torch_function_variadic
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
__getattr__, __dir__ = members("nn.functional")
