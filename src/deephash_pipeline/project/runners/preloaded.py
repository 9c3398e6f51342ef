"""Imports that the fork server makes once, for all workers."""

from importlib import import_module

import torch

from deephash_pipeline.common.imports import imported_for_good
from deephash_pipeline.pipeline_registry import OTHER_PIPELINES, STAGES

with imported_for_good():
    for _name in (*STAGES, *OTHER_PIPELINES):
        import_module(f"deephash_pipeline.pipelines.{_name}.pipeline")
    import deephash_pipeline.project.runners.workers  # noqa: F401

# Optimisers import PyTorch's compiler, used or not. It brings Triton, which must not be frozen with the others.
torch.compiler.disable(len)  # type: ignore[no-untyped-call]
