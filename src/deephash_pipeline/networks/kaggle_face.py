"""The paper's network for Kaggle-Face (appendix, first table): `z` is the last pooling, flattened.

That table leaves out rectifiers and normalisation; they are those of the table for CIFAR-10, whose other rows are the
same on smaller images.
"""

from deephash_pipeline.networks.layers import (
    AveragePooling,
    Convolution,
    Data,
    LocalResponseNormalisation,
    MaxPooling,
    ReLU,
)

KAGGLE_FACE = (
    Data(output=(3, 48, 48)),
    Convolution(32, kernel=5, stride=1, padding=2, output=(32, 48, 48)),
    MaxPooling(kernel=3, stride=2, output=(32, 24, 24)),
    ReLU(output=(32, 24, 24)),
    LocalResponseNormalisation(size=3, alpha=5e-5, within_channel=True, output=(32, 24, 24)),
    Convolution(32, kernel=5, stride=1, padding=2, output=(32, 24, 24)),
    ReLU(output=(32, 24, 24)),
    AveragePooling(kernel=3, stride=2, output=(32, 12, 12)),
    LocalResponseNormalisation(size=3, alpha=5e-5, within_channel=True, output=(32, 12, 12)),
    Convolution(64, kernel=5, stride=1, padding=2, output=(64, 12, 12)),
    ReLU(output=(64, 12, 12)),
    AveragePooling(kernel=3, stride=2, output=(64, 6, 6)),
)
