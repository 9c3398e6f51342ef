"""Stage `cnn_pretraining`: see its README."""
