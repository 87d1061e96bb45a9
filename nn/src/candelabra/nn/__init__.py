"""Modules, their functional forms, and initialisation."""
