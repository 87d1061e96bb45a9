"""The wider operators."""
