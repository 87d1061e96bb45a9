"""The operators, declared family by family. Importing this package fills the registry."""

from candelabra.ops import (  # noqa: F401 - to declare is the point
    arithmetic,
    convolution,
    creation,
    indexing,
    joining,
    network,
    normalization,
    pointwise,
    pooling,
    random,
    reductions,
    sorting,
    transfer,
    views,
)
