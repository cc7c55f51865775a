"""Convolutions, computed by the fastest engine for the layer or stack and the processor.

    engine_choice      the choice of an engine, and torch's own engines
    engines            the interface of engines: processors, work, weights
    winograd_engine    convolutions of many channels on CPUs
    direct_engine      stacks of few channels on CPUs
    cuda               stacks on NVIDIA GPUs, with `cuda.cu`

The kernels for CPUs use numba, and no torch:

    winograd_calls, direct_calls    what the engines call, with addresses of arrays
    winograd                        Winograd's algorithm
    direct                          a stack's output and gradients, frame by frame
    direct_layers                   a layer of one frame, and its gradients
    direct_blocks                   sums of products in registers, masks, shuffles of lanes
    compilation                     vectors of floats as a type; once per machine; teams of threads
"""
