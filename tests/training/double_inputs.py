"""Inputs in double precision, in which rounding cannot move a training onto another path."""


class DoubleInputs:
    """Inputs in double precision."""

    def __init__(self, inputs):
        self.inputs = inputs

    def __len__(self):
        return len(self.inputs)

    def batch(self, indices, seed=None, first=0):
        return self.inputs.batch(indices, seed, first).double()
