"""Convolutions and pooling, and their gradients."""
