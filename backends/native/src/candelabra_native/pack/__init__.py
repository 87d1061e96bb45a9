"""The pack: kernels that were compiled ahead of time, in one shared library per processor level.

``calls.py`` has the notation of the lists of calls, ``replaying.py`` finds the kernels that calls need, ``building.py``
compiles them, and ``libraries.py`` finds an entry point at run time. ``python -m candelabra_native.pack`` builds.
"""
