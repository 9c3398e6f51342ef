"""What the fork server imports once, for all workers."""

from deephash_pipeline.imports import imported_for_good

with imported_for_good():
    import deephash_pipeline.pipeline_registry
    import deephash_pipeline.runners.processes  # noqa: F401

# Optimisers import PyTorch's compiler, used or not. It brings Triton, which must not be frozen with the others.
import torch._dynamo  # noqa: F401
