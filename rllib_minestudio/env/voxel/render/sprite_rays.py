"""A flat picture one texel thick, seen by rays: a tool or an apple in the hand.

It stands in the middle of the unit cube, across z, with its rows running down y. A ray enters it by
the front, the back or a rim, and goes on from texel to texel until one is opaque.
"""

from __future__ import annotations

from numba import float32, int32

from rllib_minestudio.env.voxel.render.block_rays import away_from_zero, crossing, put_mean
from rllib_minestudio.env.voxel.render.camera import Floats, render_kernel
from rllib_minestudio.env.voxel.render.window import Rgba

RIM_SHADE, FRONT_SHADE = 0.72, 0.95
HALF_TEXEL = 0.5 / 16
"""Half the thickness."""
NEAREST = 1e-3
"""What is closer to the eye, in blocks ahead of it, is not seen."""


@render_kernel
def _span(
    x: float, y: float, z: float, dx: float, dy: float, dz: float
) -> tuple[float, float, bool]:
    """Where a ray enters and leaves the picture, and whether by its front or back."""
    near, far = float32(0.5 - HALF_TEXEL), float32(0.5 + HALF_TEXEL)
    in_z, out_z = crossing(near, far, z, float32(1) / dz)
    in_x, out_x = crossing(float32(0), float32(1), x, float32(1) / dx)
    in_y, out_y = crossing(float32(0), float32(1), y, float32(1) / dy)
    in_side = max(in_x, in_y)
    enter = max(max(in_z, in_side), float32(NEAREST))
    return enter, min(out_z, min(out_x, out_y)), in_z >= in_side


@render_kernel
def _first_texel(
    sprite: Rgba, x: float, y: float, dx: float, dy: float, enter: float, leave: float
) -> tuple[int, int, bool]:
    """Row and column of the first opaque texel that a ray meets, and whether it enters there.

    It goes from texel to texel, after Amanatides and Woo (1987). The row is -1 if there is none.
    """
    # Rows run downwards.
    u = (x + dx * enter) * float32(16)
    v = (float32(1) - y - dy * enter) * float32(16)
    column = min(max(int32(u), int32(0)), int32(15))
    row = min(max(int32(v), int32(0)), int32(15))
    step_u = int32(1) if dx > 0 else int32(-1)
    step_v = int32(1) if dy < 0 else int32(-1)
    per_u, per_v = abs(float32(1 / 16) / dx), abs(float32(1 / 16) / dy)
    border_u = (float32(column + (step_u + 1) // 2) - u) * float32(step_u)
    border_v = (float32(row + (step_v + 1) // 2) - v) * float32(step_v)
    t_u, t_v = enter + border_u * per_u, enter + border_v * per_v
    is_first = True
    while not sprite[row, column, 3] > 127:
        is_first = False
        if min(t_u, t_v) >= leave:
            return int32(-1), int32(0), False
        if t_u < t_v:
            t_u += per_u
            column += step_u
        else:
            t_v += per_v
            row += step_v
        if column < 0 or column > 15 or row < 0 or row > 15:
            return int32(-1), int32(0), False
    return row, column, is_first


@render_kernel
def trace_sprite(
    inverse: Floats, columns: Floats, rows: Floats, per_pixel: int, sprite: Rgba, picture: Rgba
) -> None:
    """Draw a picture, seen in perspective.

    Args:
        inverse: As of `block_rays.trace_boxes`, like the next three.
        columns: Likewise.
        rows: Likewise.
        per_pixel: Likewise.
        sprite: uint8 (16, 16, 4), not multiplied by alpha.
        picture: uint8 (h, w, 4) to draw on, multiplied by coverage; it is overwritten.
    """
    share = float32(1) / float32(per_pixel * per_pixel)
    x, y, z = inverse[0, 3], inverse[1, 3], inverse[2, 3]
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            red = green = blue = cover = float32(0)
            for sub in range(per_pixel * per_pixel):
                sub_row = sub // per_pixel
                right = columns[column * per_pixel + sub - sub_row * per_pixel]
                up = rows[row * per_pixel + sub_row]
                dx = away_from_zero(inverse[0, 0] * right + inverse[0, 1] * up - inverse[0, 2])
                dy = away_from_zero(inverse[1, 0] * right + inverse[1, 1] * up - inverse[1, 2])
                dz = away_from_zero(inverse[2, 0] * right + inverse[2, 1] * up - inverse[2, 2])
                enter, leave, by_front = _span(x, y, z, dx, dy, dz)
                if enter >= leave:
                    continue
                line, texel, is_first = _first_texel(sprite, x, y, dx, dy, enter, leave)
                if line >= 0:
                    shade = float32(FRONT_SHADE if is_first and by_front else RIM_SHADE)
                    red += shade * float32(sprite[line, texel, 0])
                    green += shade * float32(sprite[line, texel, 1])
                    blue += shade * float32(sprite[line, texel, 2])
                    cover += float32(255)
            put_mean(picture, row, column, share, red, green, blue, cover)
