"""Plugins: found through entry points, loaded when first needed, each failure kept to itself."""
