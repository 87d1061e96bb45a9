"""Products: of matrices and vectors, contractions over any dims."""
