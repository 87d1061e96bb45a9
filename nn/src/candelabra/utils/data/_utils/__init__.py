"""What the data loader is made of: collation, fetching, worker processes, batches in shared memory."""
