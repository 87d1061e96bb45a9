"""Conversion of tensors and Python numbers from one dtype to another."""
