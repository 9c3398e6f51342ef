"""The paper's network for CIFAR-10 (appendix, third table): Caffe's `cifar10_full`, `z` is the last pooling, flattened.

The table leaves open the padding, of 2 pixels, the rounding of pooled sizes, upwards, and the kind of normalisation;
they are Caffe's. With Caffe's alpha the normalisation was made for pixels of 0..255; on normalised images it is weak.
"""

from deephash_pipeline.networks.layers import (
    AveragePooling,
    Convolution,
    Data,
    LocalResponseNormalisation,
    MaxPooling,
    ReLU,
)

CIFAR10_FULL = (
    Data(output=(3, 32, 32)),
    Convolution(32, kernel=5, stride=1, padding=2, output=(32, 32, 32)),
    MaxPooling(kernel=3, stride=2, output=(32, 16, 16)),
    ReLU(output=(32, 16, 16)),
    LocalResponseNormalisation(size=3, alpha=5e-5, within_channel=True, output=(32, 16, 16)),
    Convolution(32, kernel=5, stride=1, padding=2, output=(32, 16, 16)),
    ReLU(output=(32, 16, 16)),
    AveragePooling(kernel=3, stride=2, output=(32, 8, 8)),
    LocalResponseNormalisation(size=3, alpha=5e-5, within_channel=True, output=(32, 8, 8)),
    Convolution(64, kernel=5, stride=1, padding=2, output=(64, 8, 8)),
    ReLU(output=(64, 8, 8)),
    AveragePooling(kernel=3, stride=2, output=(64, 4, 4)),
)
