"""The paper's networks for CIFAR-10 and Kaggle-Face: Caffe's `cifar10_full`, `z` is the last pooling, flattened.

They are the appendix's third table and its first. The first leaves out rectifiers and normalisation; they are those of
the third, whose other rows are the same on smaller images.

Both leave open the padding, of 2 pixels, the rounding of pooled sizes, upwards, and the kind of normalisation;
they are Caffe's. With Caffe's alpha the normalisation was made for pixels of 0..255; on normalised images it is weak.
"""

from deephash_pipeline.networks.layers import (
    AveragePooling,
    Convolution,
    Data,
    LayerRow,
    MaxPooling,
    ReLU,
    ResponseNormalisation,
)


def cifar10_full(side: int) -> tuple[LayerRow, ...]:
    """Make the table for colour images of so many pixels along each side.

    Example:
        >>> cifar10_full(48)[-1].output
        (64, 6, 6)
    """
    half, quarter, eighth = side // 2, side // 4, side // 8
    return (
        Data(output=(3, side, side)),
        Convolution(32, kernel=5, stride=1, padding=2, output=(32, side, side)),
        MaxPooling(kernel=3, stride=2, output=(32, half, half)),
        ReLU(output=(32, half, half)),
        ResponseNormalisation(size=3, alpha=5e-5, within_channel=True, output=(32, half, half)),
        Convolution(32, kernel=5, stride=1, padding=2, output=(32, half, half)),
        ReLU(output=(32, half, half)),
        AveragePooling(kernel=3, stride=2, output=(32, quarter, quarter)),
        ResponseNormalisation(size=3, alpha=5e-5, within_channel=True, output=(32, quarter, quarter)),
        Convolution(64, kernel=5, stride=1, padding=2, output=(64, quarter, quarter)),
        ReLU(output=(64, quarter, quarter)),
        AveragePooling(kernel=3, stride=2, output=(64, eighth, eighth)),
    )


CIFAR10_FULL, KAGGLE_FACE = cifar10_full(32), cifar10_full(48)
