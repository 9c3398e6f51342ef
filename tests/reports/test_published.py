import pytest

from deephash_pipeline.reports.published import published_map


@pytest.mark.parametrize(
    ("benchmark", "method", "code_length", "printed"),
    [
        ("mnist", "lsh", 12, 0.3717),
        ("mnist", "sdh", 24, 0.5101),
        ("mnist", "cnnh_plus", 48, 0.975),
        ("cifar10", "itq", 12, 0.2711),
        ("cifar10", "cnnh", 24, 0.511),
        ("cifar10", "dnnh", 48, 0.581),
        ("cifar10", "fine_tuning", 24, 0.7289),
        ("kaggle_face", "mlh", 12, 0.2000),
        ("kaggle_face", "random_initialisation", 48, 0.4620),
        ("kaggle_face", "ksh", 48, 0.4132),
        ("sun397", "pcah", 48, 0.0315),
        ("sun397", "pre_training", 24, 0.0430),
        ("cifar10", "ksh", 32, 0.5039),
        ("sun397", "itq", 16, 0.0309),
    ],
)
def test_published_figures_are_those_printed_in_the_paper(benchmark, method, code_length, printed):
    assert published_map(benchmark, method, code_length) == printed


@pytest.mark.parametrize(
    ("benchmark", "method", "code_length"),
    [
        ("digits", "itq", 12),
        ("mnist", "itq", 16),
        ("mnist", "dnnh", 12),
        ("kaggle_face", "cnnh", 24),
        ("cifar10", "fine_tuning", 32),
        ("cifar10", "one_of_c", 12),
    ],
)
def test_figures_that_the_paper_does_not_print_are_none(benchmark, method, code_length):
    assert published_map(benchmark, method, code_length) is None


def test_fine_tuning_leads_every_column_of_the_papers_main_tables():
    baselines = ["lsh", "itq", "pcah", "sh", "ldah", "bre", "mlh", "ksh", "cnnh", "cnnh_plus", "sdh", "dnnh"]
    rivals = [*baselines, "random_initialisation", "pre_training"]
    for benchmark in ("mnist", "cifar10", "kaggle_face", "sun397"):
        for code_length in (12, 24, 48):
            best = published_map(benchmark, "fine_tuning", code_length)
            printed = [published_map(benchmark, rival, code_length) for rival in rivals]
            assert best is not None
            assert all(figure < best for figure in printed if figure is not None)
