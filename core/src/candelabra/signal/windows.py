"""Window functions, as ``torch.signal.windows`` and ``scipy.signal.windows`` have them."""

from candelabra._namespace.publishing import members

__getattr__, __dir__ = members("signal.windows")
