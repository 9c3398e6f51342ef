"""The paper's network for MNIST (appendix, second table): Caffe's LeNet, no padding, `z` is the ReLU of 500 units."""

from deephash_pipeline.networks.layers import Convolution, Data, InnerProduct, MaxPooling, ReLU

LENET = (
    Data(output=(1, 28, 28)),
    Convolution(20, kernel=5, stride=1, output=(20, 24, 24)),
    MaxPooling(kernel=2, stride=2, output=(20, 12, 12)),
    Convolution(50, kernel=5, stride=1, output=(50, 8, 8)),
    MaxPooling(kernel=2, stride=2, output=(50, 4, 4)),
    InnerProduct(500, output=(500,)),
    ReLU(output=(500,)),
)
