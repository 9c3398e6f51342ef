from typing import Any

from benchmarks.documents import PROJECT
from benchmarks.shallow_baselines import TIMES, VARIANT_CODE_LENGTHS, VARIANTS, times_table, variants_table
from deephash_pipeline.grid import CODE_LENGTHS
from deephash_pipeline.hashing import HASH_FUNCTIONS


def row(method: str, code_length: int, **changes: Any) -> dict[str, Any]:
    return {
        "method": method,
        "code_length": code_length,
        "changes": changes,
        "fit_seconds": 1.25,
        "encode_seconds": 0.5,
        "mean_average_precision": code_length / 100,
    }


def test_tables_hold_every_method_and_every_variant() -> None:
    results = {
        "machine": {"processor": "P", "cores": 2, "load_average": 0.5},
        "database": 50_000,
        "rows": [row(method, length) for method in HASH_FUNCTIONS for length in CODE_LENGTHS],
        "variants": [row("ksh", length, labelled_samples=count) for count in (5, 9) for length in VARIANT_CODE_LENGTHS],
    }
    minutes = 1.75 * len(HASH_FUNCTIONS) * len(CODE_LENGTHS) / 60
    times = times_table(results)
    assert "encode the 50,000 images of the database" in times
    assert f"Everything together: {minutes:.1f} minutes" in times
    for hash_function in HASH_FUNCTIONS.values():
        assert f"| {hash_function.display_name} | 1.2 + 0.50 |" in times
    assert "| KSH | `labelled_samples: 9` | 0.1200 | 0.2400 | 0.4800 | 1.2 | 1.2 | 1.2 |" in variants_table(results)


def test_the_document_has_a_place_for_both_tables() -> None:
    text = (PROJECT / "docs" / "results" / "mnist.md").read_text(encoding="utf-8")
    for section in (TIMES, VARIANTS):
        assert text.count(f"<!-- {section}: begin -->") == text.count(f"<!-- {section}: end -->") == 1
