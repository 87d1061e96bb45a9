"""``make bench-opencl``: the devices of OpenCL against what people use today, a report for each driver."""
