"""The one error a user is meant to read."""


class InputError(ValueError):
    """Bad input: the message is one line that names the input and the remedy, and is shown without a traceback."""
