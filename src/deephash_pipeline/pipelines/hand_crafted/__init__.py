"""Stage `hand_crafted`: see its README."""
