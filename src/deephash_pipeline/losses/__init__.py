"""Losses of hash codes: modules that map the hash layer's output u and labels to a scalar, for any training loop.

>>> import torch
>>> from deephash_pipeline.losses import ExponentiatedLoss
>>> labels = torch.tensor([0, 0, 1, 1])
>>> u = torch.randn(4, 12, generator=torch.Generator().manual_seed(0), requires_grad=True)
>>> loss = ExponentiatedLoss(loss_scale="unit")
>>> loss(u, labels).backward()
>>> u.grad.shape, sorted(loss.metrics)
(torch.Size([4, 12]), ['saturated_share', 'true_loss', 'u_standard_deviation'])
"""

from deephash_pipeline.losses.adsh import ADSH
from deephash_pipeline.losses.bihalf import BiHalf
from deephash_pipeline.losses.cibhash import CIBHash
from deephash_pipeline.losses.class_centres import hash_centres
from deephash_pipeline.losses.cnnh import CNNH, CNNHPlus
from deephash_pipeline.losses.csq import CSQ
from deephash_pipeline.losses.dbdh import DBDH
from deephash_pipeline.losses.dch import DCH
from deephash_pipeline.losses.dfh import DFH
from deephash_pipeline.losses.dhn import DHN
from deephash_pipeline.losses.dnnh import DNNH
from deephash_pipeline.losses.dpn import DPN
from deephash_pipeline.losses.dpsh import DPSH
from deephash_pipeline.losses.dsdh import DSDH
from deephash_pipeline.losses.dsh import DSH
from deephash_pipeline.losses.dshsd import DSHSD
from deephash_pipeline.losses.dtsh import DTSH
from deephash_pipeline.losses.exponentiated import ExponentiatedLoss, LossAndGradient
from deephash_pipeline.losses.greedy_hash import GreedyHash
from deephash_pipeline.losses.greedy_hash_unsupervised import GreedyHashUnsupervised
from deephash_pipeline.losses.hashing_loss import HashingLoss, supervision_matrix
from deephash_pipeline.losses.hashnet import HashNet
from deephash_pipeline.losses.idhn import IDHN
from deephash_pipeline.losses.lcdsh import LCDSH
from deephash_pipeline.losses.mdsh import MDSH
from deephash_pipeline.losses.mihash import MIHash
from deephash_pipeline.losses.orthohash import OrthoHash
from deephash_pipeline.losses.psldh import PSLDH
from deephash_pipeline.losses.registry import LOSS_PARAMETERS, LOSSES, LossParameters, build_loss
from deephash_pipeline.losses.similarity_bits import SimilarityBits, SimilarityParameters
from deephash_pipeline.losses.similarity_codes import similarity_codes

__all__ = [
    "ADSH",
    "CNNH",
    "CSQ",
    "DBDH",
    "DCH",
    "DFH",
    "DHN",
    "DNNH",
    "DPN",
    "DPSH",
    "DSDH",
    "DSH",
    "DSHSD",
    "DTSH",
    "IDHN",
    "LCDSH",
    "LOSSES",
    "LOSS_PARAMETERS",
    "MDSH",
    "PSLDH",
    "BiHalf",
    "CIBHash",
    "CNNHPlus",
    "ExponentiatedLoss",
    "GreedyHash",
    "GreedyHashUnsupervised",
    "HashNet",
    "HashingLoss",
    "LossAndGradient",
    "LossParameters",
    "MIHash",
    "OrthoHash",
    "SimilarityBits",
    "SimilarityParameters",
    "build_loss",
    "hash_centres",
    "similarity_codes",
    "supervision_matrix",
]
