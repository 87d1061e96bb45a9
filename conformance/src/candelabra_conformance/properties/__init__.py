"""What is held of every operator and every public name: a module per subject, found by looking into this folder.

A check is a function of a :class:`~candelabra_conformance.context.Context`, what is tested, a dtype and a layout. It
returns the largest error in ULP that it saw, or None, and raises :class:`~candelabra_conformance.context.Failure`. Its
axes say on which dtypes and layouts it is tried and at which level.

What is tested is an operator's record, a public callable in the same form, or an overload set. Most properties of
public callables are those of operators, on fewer axes.
"""
