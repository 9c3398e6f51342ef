"""Compiled inner loops of the search."""
