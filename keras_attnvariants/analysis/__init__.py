"""Analyses of heads and of translations, as tables and pictures."""

from keras_attnvariants.analysis.alignments import AlignedPair
from keras_attnvariants.analysis.alignments import AlignmentErrors
from keras_attnvariants.analysis.alignments import alignment_errors
from keras_attnvariants.analysis.alignments import read_alignments
from keras_attnvariants.analysis.bleu_by_bin import BleuByBin
from keras_attnvariants.analysis.bleu_by_bin import BleuByLength
from keras_attnvariants.analysis.bleu_by_bin import BleuByOffDiagonality
from keras_attnvariants.analysis.bleu_by_bin import bleu_by_length
from keras_attnvariants.analysis.bleu_by_bin import bleu_by_off_diagonality
from keras_attnvariants.analysis.contrastive import AgreementByDistance
from keras_attnvariants.analysis.contrastive import ContrastiveAccuracy
from keras_attnvariants.analysis.contrastive import agreement_by_distance
from keras_attnvariants.analysis.contrastive import contrastive_accuracy
from keras_attnvariants.analysis.contrastive_files import ContrastivePair
from keras_attnvariants.analysis.contrastive_files import read_contrastive
from keras_attnvariants.analysis.heads import Entropy
from keras_attnvariants.analysis.heads import Locality
from keras_attnvariants.analysis.heads import OffDiagonality
from keras_attnvariants.analysis.heads import WeightByDistance
from keras_attnvariants.analysis.heads import entropy
from keras_attnvariants.analysis.heads import locality
from keras_attnvariants.analysis.heads import off_diagonality
from keras_attnvariants.analysis.heads import weight_by_distance
from keras_attnvariants.analysis.quadrants import ActivationShares
from keras_attnvariants.analysis.quadrants import QuadrantMaps
from keras_attnvariants.analysis.quadrants import activation_shares
from keras_attnvariants.analysis.quadrants import quadrant_maps
from keras_attnvariants.analysis.streams import read_pairs
from keras_attnvariants.analysis.tables import Table

__all__ = [
    "ActivationShares",
    "AgreementByDistance",
    "AlignedPair",
    "AlignmentErrors",
    "BleuByBin",
    "BleuByLength",
    "BleuByOffDiagonality",
    "ContrastiveAccuracy",
    "ContrastivePair",
    "Entropy",
    "Locality",
    "OffDiagonality",
    "QuadrantMaps",
    "Table",
    "WeightByDistance",
    "activation_shares",
    "agreement_by_distance",
    "alignment_errors",
    "bleu_by_length",
    "bleu_by_off_diagonality",
    "contrastive_accuracy",
    "entropy",
    "locality",
    "off_diagonality",
    "quadrant_maps",
    "read_alignments",
    "read_contrastive",
    "read_pairs",
    "weight_by_distance",
]
