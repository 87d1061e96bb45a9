"""Signal processing: windows and the short-time Fourier transform."""
