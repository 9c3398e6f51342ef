"""Simultaneous fine-tuning: all layers on one loss."""

from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.deephash.fine_tune import warn_if_collapsed
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.pipelines.shared.fitting import encode_z
from deephash_pipeline.pipelines.shared.searching import Sets
from deephash_pipeline.retrieval import CodeSets


def encode_images(hasher: ImageHasher, experiment: Experiment, images: Sets, z: Sets | None = None) -> CodeSets:
    """Hash database, validation set and queries; of a frozen trunk by the z there is."""
    if experiment.trunk.frozen and z is not None:
        codes = encode_z(hasher.encoder, z.training, z.validation, z.query)
    else:
        hasher.to(experiment.device)
        query, database, validation = map(hasher.encode, images)
        codes = CodeSets(database, validation, query, hasher.code_length)
    warn_if_collapsed(codes.database, hasher)
    return codes
