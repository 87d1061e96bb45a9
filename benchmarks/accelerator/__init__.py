"""The marks of a device that runs on its own: its kernels' and its training steps' times against PyTorch's there."""
