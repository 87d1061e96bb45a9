"""JAX on the CPU as a device of candelabra: an example of a backend over an existing array library."""

from candelabra.backend import hookimpl


@hookimpl
def candelabra_backend() -> object:
    """The backend; JAX is imported here, when the device is first named."""
    from candelabra_jax_example.backend import JaxBackend

    return JaxBackend()
