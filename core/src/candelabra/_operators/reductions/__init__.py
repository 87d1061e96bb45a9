"""Reductions: operators that combine the elements along some dims into one."""
