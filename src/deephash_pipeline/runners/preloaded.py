"""What the fork server imports once, for all workers. PyTorch's compiler is there because optimisers import it."""

import gc

from deephash_pipeline.imports import imported_for_good

with imported_for_good():
    import torch._dynamo  # noqa: F401

    import deephash_pipeline.pipeline_registry
    import deephash_pipeline.runners.processes  # noqa: F401

# Also with Triton: processes of the fork server end without Python's cleaning up.
gc.freeze()
