"""Convolutions by the fastest engine there is for a layer, a stack of them, and a processor.

    convolutions       which engine computes what, and torch's own
    engines            what an engine is; processors, work and weights as engines know them
    winograd_engine    convolutions of many channels on CPUs
    direct_engine      stacks of few channels on CPUs
    cuda               stacks on NVIDIA GPUs, with `cuda.cu`

Kernels for CPUs are numba's, and know no torch:

    winograd_calls, direct_calls    what their engine calls, with addresses
    winograd                        Winograd's algorithm
    direct                          a stack's output and gradients, frame by frame
    direct_layers                   a layer of one frame, and its gradients
    direct_blocks                   sums of products, in registers, and orders of lanes
    vectors                         vectors of floats as a type of numba's
    machine_code                    compiled once for a machine, and run by a team of threads
"""
