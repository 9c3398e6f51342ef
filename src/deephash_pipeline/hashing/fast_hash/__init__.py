"""FastHash: the method, and its two steps, graph cuts and boosted trees."""
