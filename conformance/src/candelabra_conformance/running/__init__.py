"""Running the suite: workers, isolation, what blocks what, expected failures."""

from candelabra_conformance.running.run import Options, ResumeError, run

__all__ = ["Options", "ResumeError", "run"]
