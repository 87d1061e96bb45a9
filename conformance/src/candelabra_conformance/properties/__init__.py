"""What is held of every operator: a module per subject, found by looking into this folder.

A check is a function of a :class:`~candelabra_conformance.context.Context`, an operator, a dtype and a layout. It
returns the largest error in ULP that it saw, or None, and raises :class:`~candelabra_conformance.context.Failure`. Its
axes say on which dtypes and layouts it is tried and at which level.
"""
