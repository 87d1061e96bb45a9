"""The marks of an asynchronous device: times of its kernels and training steps compared with PyTorch's on that
device.
"""
