"""The fast convolution gives the numbers of the slow one, and its gradients.

Tests of the kernels ask for them, so that they run on every processor; the other tests hold on
whatever engine is chosen. Which one that is: test_choice.py.
"""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.nn import functional as F

from rllib_minestudio.models.kernels import compilation, winograd_calls
from rllib_minestudio.models.kernels.engines import ConvolutionLayer, is_compiled
from rllib_minestudio.models.kernels.winograd_engine import WINOGRAD, WINOGRAD_BACKWARD
from rllib_minestudio.models.vpt.layers import SameConv3x3
from tests.models.processors import TORCH_ALONE, WITH_KERNELS

# Frames, height and width, channels in and out: edges through tiles, fewer pixels than a tile,
# more tiles than the kernel takes at a time.
SIZES = [(3, 19, 22, 32, 64), (120, 3, 5, 64, 32), (1, 33, 50, 32, 32), (2, 32, 32, 96, 64)]

FLOAT32_BOUND = 1e-5
"""Of the largest number; torch's own errors come to 1e-6, those measured here to 4e-6."""


def _example(frames, height, width, channels_in, channels_out):
    """A layer, its input, and a gradient of its output."""
    torch.manual_seed(0)
    layer = SameConv3x3(channels_in, channels_out, bias=False)
    x = torch.randn(frames, height, width, channels_in).permute(0, 3, 1, 2).requires_grad_()
    return layer, x, torch.randn(frames, channels_out, height, width)


def _by(engine, layer, x, relu=False):
    return engine.compute(x, ConvolutionLayer((layer.weight, None), relu=relu), x.dtype)


def _with_gradients(layer, x, dy, relu, engine=WINOGRAD_BACKWARD):
    y = _by(engine, layer, x, relu)
    return y, *torch.autograd.grad(y, (x, layer.weight), dy.to(y.dtype))


def _exactly(x, weight, dy, relu):
    """Output and gradients by torch in float64; ReLU falls like that of ``relu``, an output."""
    x, weight = x.detach().double().requires_grad_(), weight.detach().double().requires_grad_()
    y = F.conv2d(x, weight, padding=1)
    if relu is not None:
        y = y * (relu > 0)
    return y, *torch.autograd.grad(y, (x, weight), dy.double())


def _assert_within(actual, expected, bound):
    assert (actual - expected).abs().max() <= bound * expected.abs().max()


@pytest.mark.parametrize("engine", [WINOGRAD, WINOGRAD_BACKWARD], ids=str)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_gradients_equal_those_in_float64(size, relu, engine):
    layer, x, dy = _example(*size)
    actual = _with_gradients(layer, x, dy, relu, engine)
    expected = _exactly(x, layer.weight, dy, actual[0] if relu else None)
    for mine, exact in zip(actual, expected, strict=True):
        _assert_within(mine, exact, FLOAT32_BOUND)


@pytest.mark.parametrize("size", SIZES)
def test_outputs_without_gradients_equal_those_in_float64(size):
    layer, x, dy = _example(*size)
    with torch.no_grad():
        y, positive = (_by(WINOGRAD, layer, x, relu) for relu in (False, True))
    _assert_within(y, _exactly(x, layer.weight, dy, None)[0], FLOAT32_BOUND)
    assert torch.equal(positive, y.relu())
    assert y.permute(0, 2, 3, 1).is_contiguous()


def test_float32_outputs_that_gradients_follow_are_those_of_torch(pretended):
    layer, x, _ = _example(*SIZES[0])
    assert torch.equal(layer(x), F.conv2d(x, layer.weight, padding=1))


def test_layers_equal_torchs_in_float64_on_any_processor(pretended):
    layer, x, dy = _example(*SIZES[0])
    y = layer(x, relu=True)
    actual = y, *torch.autograd.grad(y, (x, layer.weight), dy)
    with torch.no_grad():
        alone = layer(x)
    expected = _exactly(x, layer.weight, dy, y)
    for mine, exact in zip(actual, expected, strict=True):
        _assert_within(mine, exact, FLOAT32_BOUND)
    _assert_within(alone, _exactly(x, layer.weight, dy, None)[0], FLOAT32_BOUND)


def test_layers_in_bfloat16_are_close_on_any_processor(pretended):
    layer, x, dy = _example(*SIZES[0])
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(x, relu=True)
    actual = y, *torch.autograd.grad(y, (x, layer.weight), dy.bfloat16())
    assert [tensor.dtype for tensor in actual] == [torch.bfloat16, *2 * [torch.float32]]
    # torch rounds the weights and their gradients to 8 bits, too; without AVX-512 it also sums
    # gradients of the images in bfloat16, with errors of 0.009.
    for mine, exact in zip(actual, _exactly(x, layer.weight, dy, y), strict=True):
        _assert_within(mine, exact, 2**-6)


@pytest.mark.parametrize("size", SIZES)
def test_bfloat16_rounds_images_and_nothing_else(size):
    layer, x, dy = _example(*size)
    x = x.detach().bfloat16().requires_grad_()
    dy = dy.bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        actual = _with_gradients(layer, x, dy, relu=True, engine=WINOGRAD)
    assert [tensor.dtype for tensor in actual] == [torch.bfloat16, torch.bfloat16, torch.float32]
    y, dx, dweight = _exactly(x, layer.weight, dy, actual[0])
    torch.testing.assert_close(actual[0].double(), y, rtol=2**-8, atol=1e-4)
    torch.testing.assert_close(actual[1].double(), dx, rtol=2**-8, atol=1e-4)
    _assert_within(actual[2], dweight, FLOAT32_BOUND)


def _packed(layer, norm, relu):
    weights = ConvolutionLayer((layer.weight, None, norm.weight, norm.bias), norm.eps, relu)
    return WINOGRAD.pack(weights, torch.float32)


@pytest.mark.parametrize("size", SIZES)
def test_norm_before_and_addition_after_equal_those_in_float64(size):
    layer, x, skip = _example(*size)
    norm = torch.nn.GroupNorm(1, size[3])
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    x = 3 + 2 * x.detach()  # neither centred nor scaled
    actual = WINOGRAD.forward(x, _packed(layer, norm, relu=True), skip)
    y, *_ = _exactly(norm.double()(x.double()), layer.weight, skip, None)
    _assert_within(actual, y.relu() + skip, FLOAT32_BOUND)


@pytest.mark.parametrize("ratio", [100, 10_000])
def test_norms_do_not_cancel_where_the_mean_is_large(ratio):
    layer, x, _ = _example(*SIZES[0])
    norm, x = torch.nn.GroupNorm(1, SIZES[0][3]), x.detach() + ratio
    with torch.no_grad():
        actual = WINOGRAD.forward(x, _packed(layer, norm, relu=False))
        torchs = F.conv2d(norm(x), layer.weight, padding=1)
        expected = F.conv2d(norm.double()(x.double()), layer.weight.double(), padding=1)
    rounding = (torchs - expected).abs().max() / expected.abs().max()
    _assert_within(actual, expected, 3 * rounding + FLOAT32_BOUND)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", SIZES)
def test_the_pool_is_torchs_followed_by_a_relu(size, dtype):
    _, x, _ = _example(*size)
    x = x.detach().to(dtype)
    x[0, 0, 2, 1] = torch.nan
    expected = F.relu(F.max_pool2d(x, kernel_size=3, stride=2, padding=1))
    for threads in (1, 3):
        torch.set_num_threads(threads)
        try:
            actual = WINOGRAD.pool_positive(x)
        finally:
            torch.set_num_threads(1)
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


def test_without_openmp_threads_of_pythons_do_the_same(monkeypatch):
    layer, x, dy = _example(*SIZES[0])
    alone = _with_gradients(layer, x, dy, relu=True)
    torch.set_num_threads(3)
    try:
        by_openmp = _with_gradients(layer, x, dy, relu=True)
        monkeypatch.setattr(compilation, "_openmp", lambda: None)
        by_pool = _with_gradients(layer, x, dy, relu=True)
    finally:
        torch.set_num_threads(1)
    assert all(map(torch.equal, by_pool, by_openmp))
    assert not torch.equal(by_pool[2], alone[2])  # sums of three shares, so threads were at work


def test_images_may_lie_in_memory_anyhow():
    layer, x, _ = _example(*SIZES[0])
    with torch.no_grad():
        expected = _by(WINOGRAD, layer, x)
        for same in (x.contiguous(), x.repeat(1, 1, 1, 2)[..., : x.shape[3]]):
            assert torch.equal(_by(WINOGRAD, layer, same), expected)


def test_frames_do_not_depend_on_the_others_of_a_batch():
    layer, x, _ = _example(*SIZES[3])
    with torch.no_grad():
        together = _by(WINOGRAD, layer, x)
        assert torch.equal(together[1:], _by(WINOGRAD, layer, x[1:]))


@pytest.mark.parametrize("threads", [2, 3, 32])
def test_numbers_do_not_depend_on_the_number_of_threads(threads):
    layer, x, _ = _example(*SIZES[0])
    with torch.no_grad():
        alone = _by(WINOGRAD, layer, x)
        torch.set_num_threads(threads)
        try:
            assert torch.equal(_by(WINOGRAD, layer, x), alone)
        finally:
            torch.set_num_threads(1)


@pytest.mark.parametrize("threads", [2, 3, 32])
def test_work_shared_among_threads_gives_the_same_gradients(threads):
    layer, x, dy = _example(*SIZES[0])
    alone = _with_gradients(layer, x, dy, relu=True)
    torch.set_num_threads(threads)
    try:
        shared = _with_gradients(layer, x, dy, relu=True)
        again = _with_gradients(layer, x, dy, relu=True)
    finally:
        torch.set_num_threads(1)
    for mine, expected, repeated in zip(shared, alone, again, strict=True):
        _assert_within(mine, expected, FLOAT32_BOUND)
        assert torch.equal(mine, repeated)


def test_networks_in_two_threads_do_not_disturb_each_other():
    layer, x, dy = _example(*SIZES[0])
    torch.set_num_threads(2)
    try:
        alone = _with_gradients(layer, x, dy, True)
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(_with_gradients, layer, x, dy, True) for _ in range(20)]
        for future in futures:
            assert all(map(torch.equal, future.result(), alone))
    finally:
        torch.set_num_threads(1)


def test_changed_weights_count_at_once(pretended):
    layer, x, _ = _example(*SIZES[0])
    with torch.no_grad():
        before = layer(x)
        layer.weight.mul_(2)
        assert torch.equal(layer(x), 2 * before)


def test_only_what_is_asked_for_is_differentiated(pretended):
    layer, x, dy = _example(*SIZES[0])
    layer.weight.requires_grad_(False)
    (dx,) = torch.autograd.grad(layer(x), x, dy)
    layer.weight.requires_grad_(True)
    layer(x.detach()).backward(dy)
    _, expected_dx, expected_dweight = _exactly(x, layer.weight, dy, None)
    _assert_within(dx, expected_dx, FLOAT32_BOUND)
    _assert_within(layer.weight.grad, expected_dweight, FLOAT32_BOUND)


def test_nan_stays_nan(pretended):
    layer, x, _ = _example(*SIZES[0])
    with torch.no_grad():
        x[1, 5, 6, 7] = float("nan")
        for dtype in (torch.float32, torch.bfloat16):
            with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
                y = layer(x, relu=True)
            assert y.dtype == dtype
            assert y[1, :, 5:8, 6:9].isnan().all()
            assert not y[[0, 2]].isnan().any()


def test_layers_are_copied_and_stored_as_torch_does_it(pretended):
    layer, x, _ = _example(*SIZES[0])
    assert list(layer.state_dict()) == ["weight"]
    with torch.inference_mode():
        for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert torch.equal(copied(x), layer(x))


def test_compiled_graphs_keep_the_convolution_of_torch(pretend):
    pretend(WITH_KERNELS)
    layer, x, _ = _example(*SIZES[0])
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    with torch.no_grad():
        assert torch.equal(compiled(x, relu=True), F.conv2d(x, layer.weight, padding=1).relu())


def test_kernels_add_no_bias():
    layer, x, _ = _example(*SIZES[0])
    with pytest.raises(ValueError, match=r"bias: must be None for Winograd"):
        WINOGRAD.compute(x, ConvolutionLayer((layer.weight, torch.zeros(64))), x.dtype)


def test_without_a_place_for_machine_code_torch_does_the_work(pretend, monkeypatch, caplog):
    def fail():
        raise PermissionError("no place")

    pretend(WITH_KERNELS)
    monkeypatch.setattr(winograd_calls.CODE, "compile_once", fail)
    is_compiled.cache_clear()
    try:
        layer, x, _ = _example(*SIZES[0])
        with torch.no_grad():
            found = layer(x)
    finally:
        is_compiled.cache_clear()
    pretend(TORCH_ALONE)
    with torch.no_grad():
        assert torch.equal(found, layer(x))
    assert "no place" in caplog.text
