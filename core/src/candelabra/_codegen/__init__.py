"""Code generation from records: entries, adapters and graph nodes."""
