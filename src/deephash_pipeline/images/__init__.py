"""From raw files to decoded images: sources, splits, pixel statistics and augmentation."""
