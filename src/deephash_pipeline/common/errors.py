"""The one error a user is meant to read, and what an error came from."""


class InputError(ValueError):
    """Bad input: the message is one line that names the input and the remedy, and is shown without a traceback."""


def chain_of(error: BaseException) -> list[BaseException]:
    """Walk from an error to its first cause; libraries that raise an error a second time make rings, which end it."""
    chain = [error]
    while (following := chain[-1].__cause__ or chain[-1].__context__) is not None and following not in chain:
        chain.append(following)
    return chain
