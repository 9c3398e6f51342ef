"""`deephash-pipeline encode`, and an index of its codes."""

import numpy as np
import pytest

from deephash_pipeline.encoding.encode import IMAGES_PER_BLOCK
from deephash_pipeline.photographs import ImageIndex

PRETRAINED = "pretrained:digits-48"


@pytest.fixture(scope="module")
def codes(command, photos, tmp_path_factory):
    """Codes of the photos; not to be changed."""
    folder = tmp_path_factory.mktemp("codes") / "photos.codes"
    result = command("encode", PRETRAINED, photos, "-o", folder, "--workers", 1, "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "60 images encoded, files of codes: 1" in result.output
    assert "left out: 3/broken.png: cannot identify image file" in result.output
    return folder


def test_an_index_of_codes_has_what_one_of_the_images_has(command, codes, photos, tmp_path):
    index = tmp_path / "of_codes.index"
    result = command("index", "build", index, "--codes", codes)
    assert "60 added, 60 images" in result.output, result.output
    assert "left out: 3/broken.png: cannot identify image file" in result.output
    with ImageIndex.open(index, read_only=True, device="cpu") as images:
        names = list(images)
        paths = [photos / name for name in names]
        items = images.index.items(names)
        assert np.array_equal([item.code for item in items], images.hasher.encode(paths))
        assert [item.metadata for item in items] == [{"path": str(path), "label": path.parent.name} for path in paths]
    again = command("index", "build", index, "--codes", codes)
    assert "0 added, 60 there already" in again.output


def test_help_says_how_many_images_a_file_of_codes_has(command):
    assert f"[default: {IMAGES_PER_BLOCK}]" in command("encode", "--help").output
