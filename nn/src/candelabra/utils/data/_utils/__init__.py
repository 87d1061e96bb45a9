"""The components of the data loader: collation, fetching, worker processes, shared memory."""
