"""Dispatch: find the function that serves a call, once per operator and key."""
