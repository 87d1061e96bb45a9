"""Measurements of OpenCL devices compared with other libraries, with a report for each driver (``make
bench-opencl``).
"""
