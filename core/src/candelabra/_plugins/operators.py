"""Operators of plugins without a device, declared when a program first uses a name that the library does not have.

Listing the operators declares them too. A program without such names imports no plugin. The operators of a plugin with
a device are declared when its backend loads.
"""

from __future__ import annotations

import threading
import warnings

from candelabra import _journal as journal

_lock = threading.RLock()
_started = False


def declare_all() -> None:
    """Call the hook ``candelabra_operators`` of every plugin without a device, once.

    A plugin that raises is reported by a warning. Its declarations are undone, and the other plugins are called.
    """
    global _started
    with _lock:  # another thread waits until all are declared
        if _started:
            return
        _started = True
        from candelabra._plugins.contributions import GROUP, _tool
        from candelabra._plugins.loading import declare_operators
        from candelabra._plugins.metadata import entry_points

        for entry in sorted(entry_points(GROUP)):
            # Unrecorded: if a backend's plugin is being loaded and fails, these declarations remain.
            with journal.unrecorded(), journal.Recording() as recording:
                try:
                    declare_operators(_tool(entry))
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    recording.undo()
                    warnings.warn(
                        f"plugin {entry.name!r} ({entry.value}) failed to declare its operators: "
                        f"{type(error).__name__}: {error}",
                        RuntimeWarning,
                        stacklevel=2,
                    )
