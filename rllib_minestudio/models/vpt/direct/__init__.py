"""Stacks of few channels, computed by their definition, in numba; knows no torch.

A convolution of 8 to 16 channels is too small for the libraries: moving its numbers between layers
takes longer than multiplying them. Here a thread takes one frame through a whole stack
(`impala.DownStack`): norms, ReLUs, residuals and the pool find the frame's numbers in the cache,
and what is left is the sums of products, at most of what a core can do.

    compiled        what is called from outside, with arrays
    forward         a stack's output
    backward        its gradients
    work            room for the numbers of the backward pass
    stacks          what the two agree on: sizes, and where which number lies
    convolutions, norms, pools    a layer of one frame, and its gradients
    planes          how a frame lies in memory
    blocks          sums of products, in registers
    lanes           vectors, besides `simd`
"""
