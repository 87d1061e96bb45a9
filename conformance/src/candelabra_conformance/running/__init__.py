"""Run the suite: workers, isolation, blocked cases, expected failures."""

from candelabra_conformance.running.run import Options, ResumeError, run

__all__ = ["Options", "ResumeError", "run"]
