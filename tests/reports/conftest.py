"""A small grid of made-up metrics: three methods at two code lengths, and the 1-of-C code."""

import numpy as np
import pandas as pd
import pytest

DISPLAY_NAMES = {
    "lsh": "LSH",
    "itq": "ITQ",
    "deephash_pretrained": "DeepHash (pre-training)",
    "deephash": "DeepHash (fine-tuning)",
    "one_of_c": "1-of-C code",
}

SCORES = {
    ("lsh", 12): 0.15,
    ("lsh", 32): 0.20,
    ("itq", 12): 0.30,
    ("itq", 32): 0.28,
    ("deephash", 12): 0.70,
    ("one_of_c", 10): 0.75,
}

GROUPS = {"Shallow": ["lsh", "itq"], "Deep rivals": ["csq"], "DeepHash": ["deephash_pretrained", "deephash"]}


@pytest.fixture
def groups():
    return GROUPS


@pytest.fixture
def display_names():
    return dict(DISPLAY_NAMES)


@pytest.fixture
def metrics():
    return [
        {
            "method": method,
            "code_length": code_length,
            "mean_average_precision": score,
            "mean_average_precision_optimistic": score + 0.05,
            "mean_average_precision_pessimistic": score - 0.05,
            "mean_average_precision_at_1000": score + 0.1,
            "precision_at_1000": score,
            "precision_within_radius_2": score / 2,
            "lookup_failure_rate_radius_2": 0.25,
            "queries": 1000,
            "database_size": 5000,
            "queries_without_relevant_items": 0,
            "distinct_database_codes": 812,
            "mean_bit_balance": 0.5,
            "chance_level": 0.1002,
            "validation_mean_average_precision": None,
        }
        for (method, code_length), score in SCORES.items()
    ]


@pytest.fixture
def curves():
    return pd.concat([curve(*cell, kind) for cell in SCORES for kind in ("radius", "rank")], ignore_index=True)


def curve(method, code_length, kind):
    recall = np.linspace(0, 1, code_length + 1) ** 2
    precision = SCORES[method, code_length] * (1 - recall) + 0.1 * recall
    of_cell = {"method": method, "code_length": code_length, "kind": kind, "point": np.arange(code_length + 1)}
    return pd.DataFrame({**of_cell, "precision": precision, "recall": recall})
