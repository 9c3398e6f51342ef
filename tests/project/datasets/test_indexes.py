"""An index as an artefact: written whole, made again without losing what others added."""

from dataclasses import replace

import numpy as np
import pytest
from kedro.io import DatasetError
from PIL import Image

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.digits import read_digits
from deephash_pipeline.photographs import EncodedDatabase, ImageIndex
from deephash_pipeline.project.datasets import IndexDataset
from deephash_pipeline.provenance import Origin
from deephash_pipeline.provenance.manifest import Manifest

NAME = "deephash.b48.index"
ORIGIN = Origin("make_index", command="kedro run")


@pytest.fixture(scope="module")
def database():
    """Thirty digits under their codes."""
    digits, hasher = read_digits().splits["all"], ImageHasher.pretrained("digits-48", device="cpu")
    images = digits.images[:30]
    labels = [str(label) for label in digits.labels[:30]]
    return EncodedDatabase(hasher, digits.ids[:30], hasher.encode(images), images, labels)


@pytest.fixture
def dataset(tmp_path, database):
    """The index of the digits, saved as in a run."""
    made = IndexDataset(str(tmp_path / "index" / "hasher.safetensors"))
    made.expect(NAME, ORIGIN)
    made.save(database)
    return made


def test_what_is_loaded_finds_the_images_by_their_codes(dataset, database):
    with dataset.load() as index:
        answers = index.index.search(database.codes[:3], 1)
        assert answers.ids[:, 0].tolist() == database.ids[:3]
        found = index.index.get(database.ids[3])
        assert found.metadata["label"] == "3"
        assert index.path_of(found.metadata).is_file()


def test_an_index_that_is_saved_again_has_what_was_added_meanwhile_and_what_was_removed(dataset, database):
    with ImageIndex.open(dataset.filepath.parent) as index:
        index.add_codes(["mine"], database.codes[:1])
        index.remove([database.ids[5]])
    dataset.save(database)
    with dataset.load() as index:
        assert len(index) == 31
        assert {"mine", database.ids[5]} <= set(index)


def test_pictures_stay_those_of_their_images_where_others_come_before_them(dataset, database):
    def pixels(index, name):
        return np.asarray(Image.open(index.path_of(index.index.get(name).metadata)))

    first = EncodedDatabase(database.hasher, database.ids[1:], database.codes[1:], database.images[1:], ["x"] * 29)
    dataset.save(first)
    dataset.save(
        replace(
            first,
            **{name: [getattr(database, name)[0], *getattr(first, name)] for name in ("ids", "labels")},
            codes=database.codes,
            images=database.images,
        )
    )
    with dataset.load() as index:
        for row in (0, 1, 29):
            np.testing.assert_array_equal(pixels(index, database.ids[row]), database.images[row, 0])


@pytest.mark.parametrize("change", [{"labels": ["other"] * 30}, {"codes": np.zeros((30, 6), np.uint8)}])
def test_an_index_whose_labels_or_codes_have_changed_is_made_anew(dataset, database, change):
    with ImageIndex.open(dataset.filepath.parent) as index:
        index.add_codes(["mine"], database.codes[:1])
    dataset.save(replace(database, **change))
    with dataset.load() as index:
        assert list(index) == database.ids
        assert index.index.get(database.ids[0]).metadata["label"] == change.get("labels", database.labels)[0]


def test_an_index_is_not_written_while_another_process_changes_it(dataset, database):
    with ImageIndex.open(dataset.filepath.parent), pytest.raises(DatasetError, match="is being written by"):
        dataset.save(database)


def test_an_index_whose_making_was_broken_off_is_not_taken_for_a_whole_one(dataset, database, monkeypatch):
    monkeypatch.setattr(ImageIndex, "add_codes", lambda *_: 1 / 0)
    dataset.expect(NAME, ORIGIN)
    with pytest.raises(DatasetError, match="division by zero"):
        dataset.save(replace(database, labels=["other"] * 30))
    assert dataset.check() is None


def test_damage_to_codes_or_hasher_is_seen(dataset):
    assert isinstance(dataset.check(), Manifest)
    (segment,) = (dataset.filepath.parent / "segments").iterdir()
    content = segment.read_bytes()
    segment.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InputError, match="segment"):
        dataset.check()
    segment.write_bytes(content)
    dataset.filepath.write_bytes(dataset.filepath.read_bytes()[:-1])
    with pytest.raises(InputError, match="is damaged, it has"):
        dataset.check()
