"""Optimizers and learning rate schedulers."""

from __future__ import annotations

from candelabra.optim import lr_scheduler as lr_scheduler
from candelabra.optim import swa_utils as swa_utils
from candelabra.optim._adafactor import Adafactor as Adafactor
from candelabra.optim._muon import Muon as Muon
from candelabra.optim.adadelta import Adadelta as Adadelta
from candelabra.optim.adagrad import Adagrad as Adagrad
from candelabra.optim.adam import Adam as Adam
from candelabra.optim.adamax import Adamax as Adamax
from candelabra.optim.adamw import AdamW as AdamW
from candelabra.optim.asgd import ASGD as ASGD
from candelabra.optim.lbfgs import LBFGS as LBFGS
from candelabra.optim.nadam import NAdam as NAdam
from candelabra.optim.optimizer import Optimizer as Optimizer
from candelabra.optim.radam import RAdam as RAdam
from candelabra.optim.rmsprop import RMSprop as RMSprop
from candelabra.optim.rprop import Rprop as Rprop
from candelabra.optim.sgd import SGD as SGD
from candelabra.optim.sparse_adam import SparseAdam as SparseAdam

__all__ = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "lr_scheduler", "swa_utils",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
