"""The properties of operators and public names that the suite checks: a module per subject in this folder.

A check is a function of a :class:`~candelabra_conformance.context.Context`, the tested object, a dtype and a layout. It
returns the largest error in ULP, or None, and raises :class:`~candelabra_conformance.context.Failure`. Its axes are the
dtypes and layouts with their levels.

The tested object is an operator's record, a public callable in the same form, or an overload set. Most properties of
public callables are those of operators, on fewer axes.
"""
