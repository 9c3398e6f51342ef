"""Which hash function and how many bits an index of vectors has where nobody says so."""

METHOD, CODE_LENGTH = "pca_rotation", 512
# More bits than features, or than rows to learn from.
BEYOND = "rotation"


def default_form(width: int, count: int, method: str | None, code_length: int | None) -> tuple[str, int]:
    """Method and bits; those that are given stay.

    Args:
        width: numbers of a vector.
        count: number of vectors.
        method: key of a hash function, or None.
        code_length: bits, or None.

    Example:
        >>> default_form(1280, 10_000, None, None), default_form(384, 10_000, None, None)
        (('pca_rotation', 512), ('rotation', 512))
    """
    bits = CODE_LENGTH if code_length is None else code_length
    if method is None:
        # A tenth of the rows is held out, see `building`.
        method = METHOD if bits <= min(width, count - count // 10 - 1) else BEYOND
    return method, bits
