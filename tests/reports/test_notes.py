"""What has learned next to nothing is named, with what helps."""

from deephash_pipeline.reports.notes import MOST_CELLS_NAMED, learned_little, notes_on_cells


def cell(score, method="itq", code_length=48):
    return {"method": method, "code_length": code_length, "mean_average_precision": score, "chance_level": 0.176}


def test_cells_near_chance_are_named_and_others_are_not():
    [note] = notes_on_cells([cell(0.18), cell(0.565, "ksh"), cell(0.1, "deephash", 24)], {"itq": "ITQ"})
    assert "ITQ (48 bits), deephash (24 bits)." in note
    assert "ksh" not in note
    assert "`network: small_resnet`" in note


def test_there_is_no_note_where_all_have_learned_or_nothing_was_measured():
    assert notes_on_cells([cell(0.5), cell(None), {"method": "itq", "code_length": 48}], {}) == []
    assert not learned_little(cell(None))


def test_many_are_counted():
    [note] = notes_on_cells([cell(0.18, code_length=bits) for bits in range(8, 8 + MOST_CELLS_NAMED + 3)], {})
    assert ", 3 more." in note


def test_fine_tuning_that_made_deephash_worse_is_told_by_validation_images():
    def validated(method, score, code_length=48):
        return cell(0.5, method, code_length) | {"validation_mean_average_precision": score}

    cells = [validated("deephash_pretrained", 0.91), validated("deephash", 0.85), validated("dpsh", 0.2)]
    cells += [
        validated("deephash_pretrained", 0.91, 32),
        validated("deephash", 0.905, 32),
        validated("deephash", 0.3, 8),
    ]
    [note] = notes_on_cells(cells, {})
    assert "at 48 bits: on the validation images its mAP is 0.850, that of pre-training 0.910" in note
    assert "`deephash_pretrained.b48`" in note
