import numpy as np

from deephash_pipeline.encoding import CodeBlock, CodeFolder, Encoding, Source, add_encoded
from deephash_pipeline.photographs import ImageIndex

FIRST, SECOND = "0a" * 16, "0b" * 16


def test_of_several_images_of_one_id_the_first_is_there_and_changed_labels_are_taken_over(hasher, tmp_path):
    def added(label):
        codes = CodeFolder(str(tmp_path / "codes"))
        codes.begin(Encoding(Source(str(tmp_path)), 1024, [FIRST, SECOND], "hasher", 48), b"")
        block = np.arange(18, dtype=np.uint8).reshape(3, 6)
        codes.write(FIRST, CodeBlock(["1", "2", "1"], block, [label, None, "dog"], []))
        codes.write(SECOND, CodeBlock(["2", "3"], block[:2] + 9, ["dog", "dog"], []))
        with ImageIndex.create_or_open(tmp_path / "index", hasher) as images:
            report = add_encoded(images, codes)
            found = {item.id: (item.code[0], item.metadata.get("label")) for item in images.index.items("123")}
        assert found == {"1": (0, "café"), "2": (6, None), "3": (15, "dog")}
        assert [(skipped.name, skipped.reason) for skipped in report.skipped] == [
            (name, "its id is another's: give each image its own") for name in "12"
        ]
        return report.added, report.changed, report.there

    assert added("cafe\u0301") == (3, [], 0)
    assert added("café") == (0, [], 3)
    with ImageIndex.open(tmp_path / "index") as images:
        images.add_codes(["1"], np.zeros((1, 6), np.uint8), labels=["cat"], replace=True)
    assert added("café") == (0, ["1"], 2)
