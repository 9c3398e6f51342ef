"""Checkpoints: what an interrupted training goes on from."""
