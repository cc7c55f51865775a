"""Stacks of few channels give torch's numbers, and its gradients, whatever runs beside them.

The kernels are asked for, so that they run on every processor. Which engine is
chosen: test_choice.py.
"""

import itertools

import pytest
import torch
from torch.nn import functional as F

from rllib_minestudio.models.kernels import compilation, direct_calls
from rllib_minestudio.models.kernels.direct_engine import DIRECT
from rllib_minestudio.models.kernels.engines import is_compiled
from tests.models.kernels.stacks import random_stack
from tests.models.processors import TORCH_ALONE, WITH_KERNELS

# Frames, height and width, channels in and out: rows shorter and longer than a vector, planes of
# less than a block and of several stretches, images and what follows them.
SIZES = [
    (3, 10, 22, 3, 8),
    (2, 4, 6, 8, 8),
    (20, 16, 36, 8, 16),
    (1, 64, 64, 3, 8),
    (2, 32, 32, 24, 16),
]
SMALL = SIZES[2]

BOUND = 1e-5
"""Of the largest number; errors measured here come to 2e-6, as torch's do."""


def _example(frames, height, width, channels_in, channels):
    """A stack, its input (bytes or numbers), and a gradient of its output."""
    stack = random_stack(channels_in, channels)
    x = torch.randn(frames, channels_in, height, width)
    if channels_in == 3:
        x = torch.randint(0, 256, (frames, height, width, 3), dtype=torch.uint8)
    return stack, x, torch.randn(frames, channels, height // 2, width // 2)


def _by_kernels(stack, x):
    return DIRECT.compute(x, stack.weights(), torch.float32)


def _with_gradients(stack, x, dy):
    """Output, and gradients of what has one."""
    x = x if x.dtype == torch.uint8 else x.detach().requires_grad_()
    inputs = [each for each in (x, *stack.parameters()) if each.requires_grad]
    y = _by_kernels(stack, x)
    return y, *torch.autograd.grad(y, inputs, dy)


def _exactly(stack, x, dy):
    """The same by torch in float64."""
    stack.double()
    x = x.permute(0, 3, 1, 2).double() / 255 if x.dtype == torch.uint8 else x.double()
    x.requires_grad_(stack.firstconv.norm is not None)
    inputs = [each for each in (x, *stack.parameters()) if each.requires_grad]
    y = stack(x)
    return y, *torch.autograd.grad(y, inputs, dy.double())


def _assert_within(actual, expected, bound=BOUND):
    assert actual.shape == expected.shape
    assert (actual - expected).abs().max() <= bound * expected.abs().max()


@pytest.mark.parametrize("size", SIZES)
def test_outputs_and_gradients_equal_those_in_float64(size):
    stack, x, dy = _example(*size)
    actual = _with_gradients(stack, x, dy)
    for mine, exact in zip(actual, _exactly(stack, x, dy), strict=True):
        _assert_within(mine, exact)


def test_outputs_do_not_depend_on_whether_gradients_follow():
    stack, x, _ = _example(*SMALL)
    with torch.no_grad():
        alone = _by_kernels(stack, x)
    assert torch.equal(_by_kernels(stack, x), alone)


def test_frames_do_not_depend_on_the_others_of_a_batch():
    stack, x, dy = _example(*SMALL)
    together, dx, *_ = _with_gradients(stack, x, dy)
    for frame in (0, 7, 19):
        alone, dx_alone, *_ = _with_gradients(stack, x[frame : frame + 1], dy[frame : frame + 1])
        assert torch.equal(together[frame], alone[0])
        assert torch.equal(dx[frame], dx_alone[0])


@pytest.mark.parametrize("has_openmp", [True, False])
@pytest.mark.parametrize("threads", [2, 3, 32])
def test_numbers_do_not_depend_on_the_number_of_threads(threads, has_openmp, monkeypatch):
    stack, x, dy = _example(*SMALL)
    alone = _with_gradients(stack, x, dy)
    if not has_openmp:
        monkeypatch.setattr(compilation, "_openmp", lambda: None)
    torch.set_num_threads(threads)
    try:
        shared = _with_gradients(stack, x, dy)
    finally:
        torch.set_num_threads(1)
    assert all(map(torch.equal, shared, alone))


def test_pools_hand_gradients_to_the_first_of_equal_pixels():
    """As torch does: skies are of one colour, and then windows are full of equal numbers."""
    stack, x, dy = _example(*SMALL)
    x[:, :, 4:12, 4:30] = 0.5
    actual = _with_gradients(stack, x, dy)
    for mine, exact in zip(actual, _exactly(stack, x, dy), strict=True):
        _assert_within(mine, exact)


@pytest.mark.parametrize("ratio", [100, 10_000])
def test_norms_do_not_cancel_where_the_mean_is_large(ratio):
    stack, x, dy = _example(*SMALL)
    x = x + ratio
    with torch.no_grad():
        actual = _by_kernels(stack, x)
        rounding = (F.group_norm(x, 1) - F.group_norm(x.double(), 1)).abs().max()
    _assert_within(actual, _exactly(stack, x, dy)[0], 3 * rounding + BOUND)


def test_only_what_is_asked_for_is_differentiated():
    stack, x, dy = _example(*SMALL)
    expected = _with_gradients(stack, x, dy)
    frozen = dict(stack.named_parameters())
    for parameter in frozen.values():
        parameter.requires_grad_(False)
    assert not _by_kernels(stack, x).requires_grad
    _, dx = _with_gradients(stack, x, dy)
    assert torch.equal(dx, expected[1])
    frozen["n.weight"].requires_grad_(True)
    _by_kernels(stack, x).backward(dy)
    names = [name for name, parameter in frozen.items() if parameter.grad is not None]
    assert names == ["n.weight"]
    assert torch.equal(frozen["n.weight"].grad, expected[2 + list(frozen).index("n.weight")])


def test_weights_changed_before_the_backward_pass_are_refused():
    stack, x, dy = _example(*SMALL)
    y = _by_kernels(stack, x)
    with torch.no_grad():
        stack.n.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(dy)


def test_images_may_lie_in_memory_anyhow():
    stack, x, _ = _example(*SMALL)
    expected = _by_kernels(stack, x)
    for same in (x.to(memory_format=torch.channels_last), x.repeat(1, 1, 1, 2)[..., : x.shape[3]]):
        assert torch.equal(_by_kernels(stack, same), expected)


def test_bfloat16_changes_the_input_only(pretend):
    pretend(WITH_KERNELS)
    stack, x, _ = _example(*SMALL)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        y = stack(x.bfloat16())
    assert torch.equal(y, _by_kernels(stack, x.bfloat16().float()))


def test_no_frames_are_no_numbers_and_no_gradients():
    stack, x, dy = _example(*SMALL)
    y, dx, *gradients = _with_gradients(stack, x[:0], dy[:0])
    assert y.shape == dy[:0].shape and dx.shape == x[:0].shape
    assert not any(gradient.any() for gradient in gradients)


def test_nan_in_the_weights_is_nan_in_the_output():
    stack, x, _ = _example(*SMALL)
    with torch.no_grad():
        stack.firstconv.layer.weight[3, 2, 1, 1] = torch.nan
        assert _by_kernels(stack, x).isnan().all()


def test_odd_sides_are_refused():
    stack, x, _ = _example(*SMALL)
    with pytest.raises(ValueError, match=r"even sides, but these are 15 x 36"):
        _by_kernels(stack, x[:, :, 1:])


def test_without_a_place_for_machine_code_torch_does_the_work(pretend, monkeypatch, caplog):
    def fail():
        raise PermissionError("no place")

    stack, x, _ = _example(*SMALL)
    pretend(WITH_KERNELS)
    monkeypatch.setattr(direct_calls.CODE, "compile_once", fail)
    is_compiled.cache_clear()
    try:
        found = stack(x)
    finally:
        is_compiled.cache_clear()
    pretend(TORCH_ALONE)
    assert torch.equal(found, stack(x))
    assert "no place" in caplog.text


def test_stacks_equal_torchs_on_any_processor(pretended):
    for size, dtype in itertools.product(SIZES[1:3], (torch.float32, torch.bfloat16)):
        stack, x, dy = _example(*size)
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            y = stack(x)
        bound = BOUND if dtype == torch.float32 else 0.05
        _assert_within(y, _exactly(stack, x, dy)[0], bound)
