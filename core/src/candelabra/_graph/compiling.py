"""Ask a device for a function that runs a graph: its contributors, then its owner, then the core."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import Any, Final
from candelabra._device import Instance
from candelabra._graph.running import runner
from candelabra._graph.structure import Graph
from candelabra._keys import OWN_KERNELS, state
from candelabra._plugins import registry
from candelabra._plugins.contributed_kernels import Contribution

COMPILE_HOOK: Final = "candelabra_compile"


def instances_of(graph: Graph) -> set[Instance]:
    """Return the devices of a graph's values."""
    values = (*graph.inputs, *(value for node in graph.nodes for value in (*node.operands, *node.results)))
    return {value.spec.instance for value in values if value.spec is not None}


def compile_graph(graph: Graph) -> Callable[..., tuple[Any, ...]]:
    """Return a function of the payloads of ``graph.inputs`` that returns the payloads of ``graph.outputs``.

    A graph of one device is offered to those who contribute kernels to it, then to ``Backend.compile``. If all decline
    it, or if it has several devices, the function of :func:`~candelabra.graph.runner` calls the kernels.
    """
    instances = instances_of(graph)
    if len(instances) != 1 or not graph.nodes:
        return runner(graph)
    [instance] = instances
    function = _offered(graph, instance) or runner(graph)
    return _evaluated(function, instance) if instance.lazy else function


def _offered(graph: Graph, instance: Instance) -> Callable[..., tuple[Any, ...]] | None:
    """Return the function of a contributor or of the owner of a device, or None if all decline the graph."""
    if not state.bits & OWN_KERNELS:
        for contribution in registry.contributing(instance.device.type):
            function = _contributed(contribution, instance, graph)
            if function is not None:
                return function
    return instance.backend.compile(graph)


def _evaluated(function: Callable[..., Any], instance: Instance) -> Callable[..., Any]:
    """Return the function of a lazy device that also has its results computed, so that a loop stays short."""

    def run(*payloads: Any) -> Any:
        results = function(*payloads)
        instance.backend.evaluate(results)
        return results

    return run


def _contributed(contribution: Contribution, instance: Instance, graph: Graph) -> Callable[..., Any] | None:
    from candelabra._plugins.loading import call_hook

    found: Callable[..., Any] | None = call_hook(
        contribution.plugin, COMPILE_HOOK, device_type=instance.device.type, graph=graph
    )
    return found


__all__ = ["compile_graph", "instances_of"]
