"""The paper's network for SUN397 (appendix, fourth table): CaffeNet up to its last pooling, `z` of 9,216."""

from deephash_pipeline.networks.layers import Convolution, Data, LayerRow, MaxPooling, ReLU, ResponseNormalisation


def caffenet(groups: int) -> tuple[LayerRow, ...]:
    """Make the table.

    Args:
        groups: number of groups of the second, fourth and fifth convolution, which the paper's table does not name: 2
            in CaffeNet, once so that the network fitted two graphics cards; 1 for filters that see all channels.

    Example:
        >>> caffenet(groups=2)[-1].output
        (256, 6, 6)
    """
    return (
        Data(output=(3, 227, 227)),
        Convolution(96, kernel=11, stride=4, output=(96, 55, 55)),
        ReLU(output=(96, 55, 55)),
        MaxPooling(kernel=3, stride=2, output=(96, 27, 27)),
        ResponseNormalisation(size=5, alpha=1e-4, within_channel=False, output=(96, 27, 27)),
        Convolution(256, kernel=5, stride=1, padding=2, groups=groups, output=(256, 27, 27)),
        ReLU(output=(256, 27, 27)),
        MaxPooling(kernel=3, stride=2, output=(256, 13, 13)),
        ResponseNormalisation(size=5, alpha=1e-4, within_channel=False, output=(256, 13, 13)),
        Convolution(384, kernel=3, stride=1, padding=1, output=(384, 13, 13)),
        ReLU(output=(384, 13, 13)),
        Convolution(384, kernel=3, stride=1, padding=1, groups=groups, output=(384, 13, 13)),
        ReLU(output=(384, 13, 13)),
        Convolution(256, kernel=3, stride=1, padding=1, groups=groups, output=(256, 13, 13)),
        ReLU(output=(256, 13, 13)),
        MaxPooling(kernel=3, stride=2, output=(256, 6, 6)),
    )


CAFFENET, CAFFENET_UNGROUPED = caffenet(groups=2), caffenet(groups=1)
