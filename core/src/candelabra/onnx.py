"""Export to ONNX: not supported yet. The module can be imported, and its functions raise ``NotImplementedError``."""

from __future__ import annotations

from candelabra._absent import missing

_REASON = "export to ONNX is not supported yet; candelabra.save writes safetensors, which other frameworks read"
export = missing("onnx", "export", _REASON)
dynamo_export = missing("onnx", "dynamo_export", _REASON)
register_custom_op_symbolic = missing("onnx", "register_custom_op_symbolic", _REASON)


def is_in_onnx_export() -> bool:
    """Return False: no export is running."""
    return False


__all__ = ["dynamo_export", "export", "is_in_onnx_export", "register_custom_op_symbolic"]


def __dir__() -> list[str]:
    return sorted(__all__)
