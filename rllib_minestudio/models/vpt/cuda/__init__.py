"""Stacks of convolutions on NVIDIA GPUs: cuDNN's convolutions, and kernels for what lies between.

torch normalises a frame by one block of threads, copies it out of channels-last layout and back,
and goes through memory once for every ReLU, pool, norm and sum. `kernels.cu` does these together,
`program.py` compiles it through NVRTC, which comes with torch, so that no compiler is needed on
the user's machine, and `stacks.py` puts the steps in order.
"""
