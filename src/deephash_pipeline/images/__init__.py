"""From raw files to the inputs of a network: sources, decoding, splits, pixel statistics and augmentation.

`sources` lists or reads the images of a benchmark, `decoding` turns files into arrays. For images at hand, without a
benchmark, there is `image_batches`.
"""
