"""Windows of images lie where they are said to lie."""

import torch

from deephash_pipeline.common.randomness import derive_seed, uniform_numbers
from deephash_pipeline.images.crops import centre_crop, random_crop


def batch(count=5, height=9, width=8):
    return torch.randint(0, 256, (count, 3, height, width), generator=torch.Generator().manual_seed(1)).byte()


def test_the_centre_has_as_much_on_either_side():
    images = batch()
    assert torch.equal(centre_crop(images, (5, 4)), images[:, :, 2:7, 2:6])
    assert torch.equal(centre_crop(images, (9, 8)), images)
    # 256 to 227, as Caffe has it.
    assert centre_crop(torch.arange(256)[None, None, :, None], (227, 1))[0, 0, [0, -1], 0].tolist() == [14, 240]


def test_a_random_window_lies_where_its_address_says():
    images = batch()
    windows = random_crop(images, (5, 7), seed=3, first=20)
    for number, (image, window) in enumerate(zip(images, windows, strict=True)):
        down, right = uniform_numbers(derive_seed(3, "crop"), torch.tensor([20 + number]), 2)[0].tolist()
        top, left = int(5 * down), int(2 * right)
        assert torch.equal(window, image[:, top : top + 5, left : left + 7])


def test_all_places_are_equally_frequent():
    image = torch.arange(12.0).view(1, 1, 4, 3).expand(6000, 1, 4, 3)
    corners = random_crop(image, (2, 2), seed=0)[:, 0, 0, 0].long()
    counts = torch.bincount(corners, minlength=12)
    places = [0, 1, 3, 4, 6, 7]
    assert counts.sum() == counts[places].sum()
    assert float(((counts[places] - 1000) ** 2 / 1000).sum()) < 20.5  # chi-square, 5 degrees, p = 0.001


def test_a_batch_in_pieces_is_cut_like_the_whole():
    images = batch(12)
    pieces = [random_crop(images[start : start + 5], (6, 6), 7, 30 + start) for start in (0, 5, 10)]
    assert torch.equal(torch.cat(pieces), random_crop(images, (6, 6), 7, 30))


def test_a_window_of_the_whole_image_is_the_image():
    images = batch()
    assert random_crop(images, (9, 8), seed=3) is images
