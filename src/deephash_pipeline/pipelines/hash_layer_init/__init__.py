"""Stage `hash_layer_init`: see its README."""
