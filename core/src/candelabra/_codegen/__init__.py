"""Functions written as text from records: entries, adapters and graph nodes."""
