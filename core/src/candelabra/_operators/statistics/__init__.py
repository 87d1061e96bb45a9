"""Statistics of samples: covariances and histograms."""
