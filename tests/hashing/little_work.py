"""Parameters with which the slow methods learn for a short time only."""

from deephash_pipeline.hashing import AGH, COSDISH, FSDH, KSH, LDAH, MLH, SDH, FastHash, LiongSDH

LITTLE_WORK = {
    LDAH: {"positive_pairs": 2000, "negative_pairs": 2000, "principal_components": 64},
    KSH: {"anchors": 40, "iterations": 20},
    MLH: {"stages": 3, "batches_per_stage": 20},
    LiongSDH: {"iterations": 5},
    AGH: {"anchors": 40},
    SDH: {"anchors": 40},
    FSDH: {"anchors": 40},
    COSDISH: {"anchors": 40, "rounds": 2},
    FastHash: {"trees": 2, "partners": 10},
}
