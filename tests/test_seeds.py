from deephash_pipeline.seeds import derive_seed


def test_a_seed_is_a_function_of_the_configured_seed_and_the_place() -> None:
    assert derive_seed(42, "order", 3) == derive_seed(42, "order", 3)
    places = [(42, "order", 3), (42, "order", 4), (42, "augmentation", 3), (43, "order", 3), (42, 3, "order")]
    assert len({derive_seed(*place) for place in places}) == len(places)


def test_a_seed_is_the_same_on_every_machine_and_fits_a_signed_word() -> None:
    assert derive_seed(42, "order", 1) == 2000385278109083267
    assert all(0 <= derive_seed(seed, "order") < 2**63 for seed in range(100))
