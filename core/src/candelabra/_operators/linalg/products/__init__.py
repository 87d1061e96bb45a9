"""Products of matrices and vectors, and contractions over any dims."""
