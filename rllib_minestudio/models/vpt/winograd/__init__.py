"""3x3 convolutions by Winograd's algorithm F(4x4, 3x3), in numba; knows no torch.

An output square of 4x4 pixels, a tile, needs the 6x6 input pixels around it. Seen as polynomials
of degree 5 in each axis and taken at 6x6 points, an input d and a filter g are convolved by
multiplying: Y = A^T [(G g G^T) * (B^T d B)] A. That is 36 products per tile and pair of channels,
where the definition has 144; over tiles and channels they are 36 products of matrices, one per
point. Gradients of the input are the same with another filter, and those of the filter are the
transpose: dg = G^T [(B^T d B) * (A dY A^T)] G.

Source: Lavin & Gray 2016, arXiv:1509.09308, sections 4.1 and 4.3.

    compiled    what is called from outside, with arrays
    kernels     whole convolutions, gradients of filters, and what comes between convolutions
    tiles       the transforms B, G and A
    product     the product of matrices
"""

PANEL_VECTORS = 2
"""Vectors of output channels that the kernels compute at a time; channels come in whole panels."""
