"""A bag of SIFT words: which of a vocabulary's small patterns occur in an image, and how often.

Each image is covered by a grid of square patches of a few sizes, all upright. A patch becomes a SIFT descriptor, a
histogram of gradients in 4 x 4 cells and 8 directions (Lowe, IJCV 2004); its square roots after division by its sum, so
that the Euclidean distance compares histograms as Hellinger's does (RootSIFT: Arandjelović & Zisserman, CVPR 2012).
The vocabulary consists of the centres of clusters of training descriptors, and an image becomes the histogram of the
words that its descriptors are nearest to (Sivic & Zisserman, ICCV 2003), again with square roots.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from deephash_pipeline.common.devices import to_device
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import required
from deephash_pipeline.common.parameters import Parameters
from deephash_pipeline.common.progress import track

cv2 = required("cv2", "pipeline")

DIMENSION = 128
CELLS = 4
# OpenCV's cells are 3 sigma wide, and its keypoints have size 2 sigma.
SIZE_PER_CELL = 2 / 3
# As in VLFeat's `vl_phow`: an image is smoothed with sigma = cell / 6 before its gradients are taken.
SMOOTHING_PER_CELL = 1 / 6
# Descriptors for each word in a batch of the clustering, so that it moves most words.
BATCH_PER_WORD = 2
SMALLEST_BATCH = 1024
# Products of that many descriptors with all words are in memory at a time.
DESCRIPTORS_PER_BLOCK = 2048


class SiftBagParameters(Parameters):
    """Parameters of the bag of words; the defaults suit photographs of 256 pixels.

    The paper names 5,000 words, and nothing else.

    Attributes:
        words: size of the vocabulary, 5,000.
        longest_side: images are reduced to at most so many pixels along their longer side, 256, the size to which the
            networks' images are resized.
        cell_sizes: sides of a descriptor's 4 x 4 cells in pixels, (4, 8): two of the four sizes of VLFeat's `vl_phow`,
            the smaller one also that of LabelMe's `LMdenseSift`. Images of 32 pixels rather need (2, 4) and step 2.
        step: distance between neighbouring patches in pixels, 8. `vl_phow` takes 2, at 16 times the cost.
        contrast_threshold: patches whose grey values, in units of [0, 1], have a smaller standard deviation are left
            out: 0.01, two and a half grey levels, as their gradients are mostly noise. A choice of ours.
        vocabulary_images: the most training images that the vocabulary is learned from, 5,000.
        descriptors_per_image: the most descriptors that each of them contributes, 200; that makes a million.
    """

    words: int = Field(default=5000, ge=1)
    longest_side: int = Field(default=256, ge=8)
    cell_sizes: tuple[Annotated[int, Field(ge=2)], ...] = Field(default=(4, 8), min_length=1)
    step: int = Field(default=8, ge=1)
    contrast_threshold: float = Field(default=0.01, ge=0, lt=0.5)
    vocabulary_images: int = Field(default=5000, ge=1)
    descriptors_per_image: int = Field(default=200, ge=1)


def dense_sift(images: NDArray[np.uint8], parameters: SiftBagParameters) -> Iterator[NDArray[np.float32]]:
    """Describe the patches of each image.

    Args:
        images: uint8 of shape (n, channels, height, width); may be memory-mapped, then they are read one by one.
            Colours are averaged.
        parameters: parameters of the grid and its patches.

    Returns:
        For each image an array float32 of shape (patches, 128), its rows of Euclidean length 1. Patches of low contrast
        are left out, so there may be none.

    Raises:
        InputError: the largest patch does not fit into the images.

    Example:
        >>> images = np.random.default_rng(0).integers(256, size=(1, 3, 64, 64), dtype=np.uint8)
        >>> next(dense_sift(images, SiftBagParameters())).shape
        (74, 128)
    """
    return map(_DenseSift(images.shape[2], images.shape[3], parameters), images)


def fit_vocabulary(images: NDArray[np.uint8], parameters: SiftBagParameters, seed: int) -> NDArray[np.float32]:
    """Learn the words: centres of clusters of descriptors, by k-means on small batches.

    Args:
        images: the training images, as for `dense_sift`.
        parameters: parameters of the grid, its patches and the vocabulary.
        seed: seed of the sample of images, of their descriptors and of the clustering.

    Returns:
        Words, float32 of shape (`parameters.words`, 128).

    Raises:
        InputError: as for `dense_sift`, or the images have fewer descriptors than there are to be words.

    Example:
        >>> images = np.random.default_rng(0).integers(256, size=(4, 3, 64, 64), dtype=np.uint8)
        >>> fit_vocabulary(images, SiftBagParameters(words=10), seed=0).shape
        (10, 128)
    """
    describe = _DenseSift(images.shape[2], images.shape[3], parameters)
    generator = np.random.default_rng(seed)
    chosen = np.sort(generator.permutation(len(images))[: parameters.vocabulary_images])
    sample = [np.empty((0, DIMENSION), dtype=np.float32)]
    for row in track(chosen, "vocabulary", len(chosen)):
        descriptors = describe(images[row])
        sample.append(descriptors[generator.permutation(len(descriptors))[: parameters.descriptors_per_image]])
    descriptors = np.concatenate(sample)
    if len(descriptors) < parameters.words:
        raise InputError(
            f"the {len(chosen)} images sampled give {len(descriptors)} descriptors for {parameters.words} words: "
            "choose fewer words or a smaller step, or give more images."
        )
    from sklearn.cluster import MiniBatchKMeans  # noqa: PLC0415 - a fifth of a second, for every command

    clusters = MiniBatchKMeans(
        parameters.words,
        batch_size=max(SMALLEST_BATCH, BATCH_PER_WORD * parameters.words),
        n_init=1,
        random_state=int(generator.integers(2**31)),
    )
    return np.asarray(clusters.fit(descriptors).cluster_centers_, dtype=np.float32)


def bag_of_words(
    images: NDArray[np.uint8], vocabulary: NDArray[np.float32], parameters: SiftBagParameters, device: torch.device
) -> NDArray[np.float32]:
    """Describe images by how often each word occurs.

    Args:
        images: images, as for `dense_sift`.
        vocabulary: words that `fit_vocabulary` returned for these parameters.
        parameters: parameters of the grid, its patches and the vocabulary.
        device: device where descriptors are compared with words.

    Returns:
        Square roots of the shares of the words, float32 of shape (n, `parameters.words`): rows of Euclidean length 1,
        or of zeros for an image without descriptors.

    Raises:
        InputError: as for `dense_sift`, or the vocabulary has another shape or type.

    Example:
        >>> images = np.random.default_rng(0).integers(256, size=(4, 3, 64, 64), dtype=np.uint8)
        >>> parameters = SiftBagParameters(words=10)
        >>> words = fit_vocabulary(images, parameters, seed=0)
        >>> bag_of_words(images, words, parameters, torch.device("cpu")).shape
        (4, 10)
    """
    if vocabulary.dtype != np.float32 or vocabulary.shape != (parameters.words, DIMENSION):
        raise InputError(
            f"the vocabulary is {vocabulary.dtype} of shape {vocabulary.shape}, not float32 of shape "
            f"({parameters.words}, {DIMENSION}): fit it again with these parameters."
        )
    words = to_device(vocabulary, device)
    offsets = -words.square().sum(dim=1) / 2
    bags = np.empty((len(images), parameters.words), dtype=np.float32)
    for bag, descriptors in zip(bags, track(dense_sift(images, parameters), "words", len(images)), strict=True):
        counts = torch.zeros(parameters.words, dtype=torch.int64, device=device)
        for block in torch.split(to_device(descriptors, device), DESCRIPTORS_PER_BLOCK):
            # The nearest word w maximises x'w - |w|^2 / 2.
            counts += torch.addmm(offsets, block, words.T).argmax(dim=1).bincount(minlength=parameters.words)
        bag[:] = (counts / max(len(descriptors), 1)).sqrt().cpu().numpy()
    return bags


class _DenseSift:
    """Maps images (channels, height, width) of one size to their descriptors."""

    def __init__(self, height: int, width: int, parameters: SiftBagParameters) -> None:
        reduction = min(1.0, parameters.longest_side / max(height, width))
        self.height, self.width = round(height * reduction), round(width * reduction)
        self.contrast_threshold = parameters.contrast_threshold
        largest = CELLS * max(parameters.cell_sizes)
        if min(self.height, self.width) < largest:
            raise InputError(
                f"images have {self.height} x {self.width} pixels, but patches of 4 x 4 cells of "
                f"{max(parameters.cell_sizes)} pixels take {largest} x {largest}: choose smaller cell_sizes."
            )
        self.grids = [self._grid(size, parameters.step) for size in parameters.cell_sizes]

    def __call__(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        grey = image.mean(axis=0, dtype=np.float32)
        if grey.shape != (self.height, self.width):
            grey = cv2.resize(grey, (self.width, self.height), interpolation=cv2.INTER_AREA)
        pixels = np.rint(grey).astype(np.uint8)
        return np.concatenate([self._descriptors(pixels, *grid) for grid in self.grids])

    def _grid(self, cell_size: int, step: int) -> tuple[int, NDArray[np.int64], Any, list[Any]]:
        """Side of the patches, their centres (row, column), and OpenCV's objects: the descriptor and its keypoints."""
        side = CELLS * cell_size
        # What the steps leave over goes to both edges alike.
        rows, columns = (
            np.arange((length - side) % step // 2, length - side + 1, step) + side // 2
            for length in (self.height, self.width)
        )
        centres = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
        # One layer: none but the first is looked at.
        sift = cv2.SIFT.create(nOctaveLayers=1, sigma=SMOOTHING_PER_CELL * cell_size)
        keypoints = [
            # Without an angle, -1 would turn the patch by a degree.
            cv2.KeyPoint(float(column), float(row), size=SIZE_PER_CELL * cell_size, angle=0)
            for row, column in centres
        ]
        return side, centres, sift, keypoints

    def _descriptors(
        self, pixels: NDArray[np.uint8], side: int, centres: NDArray[np.int64], sift: Any, keypoints: list[Any]
    ) -> NDArray[np.float32]:
        window = (side, side)
        means = np.asarray(cv2.boxFilter(pixels, cv2.CV_64F, window))
        variances = np.asarray(cv2.sqrBoxFilter(pixels, cv2.CV_64F, window)) - means**2
        contrasts = np.sqrt(np.maximum(variances[tuple(centres.T)], 0)) / 255
        histograms: NDArray[np.float32] = sift.compute(pixels, keypoints)[1]
        totals = histograms.sum(axis=1)
        kept = (contrasts >= self.contrast_threshold) & (totals > 0)
        return np.asarray(np.sqrt(histograms[kept] / totals[kept, np.newaxis]))
