"""Which engine computes a layer, as a table: docs/vpt.md has it, too."""

import itertools
import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path as File

import llvmlite.binding
import numba
import pytest
import torch
from torch.nn import functional as F

from rllib_minestudio.foundation import machine_code
from rllib_minestudio.foundation.machine_code import MachineTarget
from rllib_minestudio.models.kernels import compilation, engines
from rllib_minestudio.models.kernels.cuda import CUDA
from rllib_minestudio.models.kernels.direct_engine import DIRECT
from rllib_minestudio.models.kernels.engine_choice import ENGINES, ONEDNN, TORCH, choose
from rllib_minestudio.models.kernels.engines import Convolution, ConvolutionStack, Processor
from rllib_minestudio.models.kernels.winograd_engine import WINOGRAD, WINOGRAD_BACKWARD
from rllib_minestudio.models.vpt.layers import DownStack, SameConv3x3

FLOAT32, BFLOAT16 = torch.float32, torch.bfloat16
BACKWARD, GPU = WINOGRAD_BACKWARD, torch.device("cuda")

PROCESSORS = {
    "AVX-512 and AMX": Processor(lanes=16, amx=True, onednn=True, onednn_bfloat16=True),
    "AVX-512": Processor(lanes=16, amx=False, onednn=True, onednn_bfloat16=True),
    "AVX2": Processor(lanes=8, amx=False, onednn=True, onednn_bfloat16=False),
    "AMX, but NUMBA_CPU_NAME=generic": Processor(
        lanes=0, amx=True, onednn=True, onednn_bfloat16=True
    ),
    "no FMA": Processor(lanes=0, amx=False, onednn=True, onednn_bfloat16=False),
    "ARM with bfloat16": Processor(lanes=8, amx=False, onednn=True, onednn_bfloat16=True),
    "ARM, no oneDNN": Processor(lanes=8, amx=False, onednn=False, onednn_bfloat16=False),
    "unknown, no oneDNN": Processor(lanes=0, amx=False, onednn=False, onednn_bfloat16=False),
}

WORK = {
    "acting": Convolution((64, 64), FLOAT32),
    "no gradients": Convolution((64, 64), FLOAT32, pixels=1024),
    "gradients": Convolution((64, 64), FLOAT32, pixels=1024, has_gradients=True),
    "acting, bf16": Convolution((64, 64), BFLOAT16),
    "no gradients, bf16": Convolution((64, 64), BFLOAT16, pixels=1024),
    "gradients, bf16": Convolution((64, 64), BFLOAT16, pixels=1024, has_gradients=True),
    "48 channels": Convolution((48, 96), FLOAT32),
}

TABLE = {
    "AVX-512 and AMX": (WINOGRAD, WINOGRAD, BACKWARD, ONEDNN, TORCH, TORCH, ONEDNN),
    "AVX-512": (WINOGRAD, WINOGRAD, BACKWARD, WINOGRAD, WINOGRAD, WINOGRAD, ONEDNN),
    "AVX2": (WINOGRAD, WINOGRAD, BACKWARD, WINOGRAD, WINOGRAD, WINOGRAD, WINOGRAD),
    "AMX, but NUMBA_CPU_NAME=generic": (ONEDNN, TORCH, TORCH, ONEDNN, TORCH, TORCH, ONEDNN),
    "no FMA": (ONEDNN, TORCH, TORCH, ONEDNN, TORCH, TORCH, ONEDNN),
    "ARM with bfloat16": (WINOGRAD, WINOGRAD, BACKWARD, WINOGRAD, WINOGRAD, WINOGRAD, WINOGRAD),
    "ARM, no oneDNN": (WINOGRAD, WINOGRAD, BACKWARD, WINOGRAD, WINOGRAD, WINOGRAD, WINOGRAD),
    "unknown, no oneDNN": (TORCH, TORCH, TORCH, TORCH, TORCH, TORCH, TORCH),
}
"""Engines of what `WORK` lists, in its order."""

WITHOUT_ONEDNN = {"ARM, no oneDNN", "unknown, no oneDNN"}

ROUNDS_FLOAT32 = {"AVX2", "no FMA"}
"""Where oneDNN has no bfloat16, and layers under it compute in float32."""

UNSUITED = {
    "a bias": {"has_bias": True},
    "few channels in": {"channels": (16, 64)},
    "few channels out": {"channels": (64, 16)},
    "few pixels": {"pixels": 1023},
    "a GPU": {"device": GPU},
    "weights in bfloat16": {"weight_dtype": BFLOAT16},
    "float64": {"dtype": torch.float64},
    "float16": {"dtype": torch.float16},
    "torch.compile": {"is_traced": True},
}


def suited(work):
    """What some processor may take, the preferred first."""
    return [engine for engine in ENGINES[type(work)] if not engine.why_not(work)]


@pytest.fixture
def chosen(pretend, monkeypatch):
    """Chooses as on a processor where all kernels can be compiled."""
    for engine in (CUDA, DIRECT, WINOGRAD):
        monkeypatch.setattr(type(engine), "is_ready", lambda *_: True)

    def choose_on(work, processor):
        pretend(processor)
        return choose(work)

    return choose_on


@pytest.mark.parametrize("name", PROCESSORS)
def test_the_engine_of_a_convolution(name, chosen):
    found = [chosen(work, PROCESSORS[name]) for work in WORK.values()]
    assert dict(zip(WORK, found, strict=True)) == dict(zip(WORK, TABLE[name], strict=True))


@pytest.mark.parametrize("name", PROCESSORS)
def test_onednn_takes_frozen_linear_layers_on_cpus(name):
    assert PROCESSORS[name].has_onednn_for(torch.device("cpu")) == (name not in WITHOUT_ONEDNN)
    assert not PROCESSORS[name].has_onednn_for(GPU)


@pytest.mark.parametrize("name", PROCESSORS)
def test_the_precision_of_sums_under_bfloat16(name):
    expected = FLOAT32 if name in ROUNDS_FLOAT32 else BFLOAT16
    arithmetic, cpu = PROCESSORS[name].arithmetic, torch.device("cpu")
    assert arithmetic(BFLOAT16, cpu) == expected
    assert arithmetic(BFLOAT16, GPU) == BFLOAT16
    assert arithmetic(FLOAT32, cpu) == FLOAT32


@pytest.mark.parametrize("what", UNSUITED)
@pytest.mark.parametrize("processor", PROCESSORS.values(), ids=PROCESSORS)
def test_what_the_kernels_cannot_do_or_gain_nothing_by_is_torchs(what, processor, chosen):
    for work in (WORK["no gradients"], WORK["gradients"]):
        assert chosen(work._replace(**UNSUITED[what]), processor) is TORCH


DIRECT_ON = {"AVX-512 and AMX", "AVX-512", "AVX2", "ARM with bfloat16", "ARM, no oneDNN"}

NOT_DIRECT = {
    "few channels out": ConvolutionStack((8, 4)),
    "channels out that fill no block": ConvolutionStack((8, 12)),
    "few channels in": ConvolutionStack((4, 8)),
    "many channels": ConvolutionStack((16, 32)),
    "many channels in": ConvolutionStack((32, 16)),
    "weights in float64 on a GPU": ConvolutionStack((8, 8), weight_dtype=torch.float64, device=GPU),
    "float16 on a GPU": ConvolutionStack((8, 8), device=GPU, dtype=torch.float16),
    "channels that fill no read on a GPU": ConvolutionStack((8, 12), device=GPU),
    "channels in that fill none": ConvolutionStack((4, 8), device=GPU),
    "no frames on a GPU": ConvolutionStack((8, 8), device=GPU, frames=0),
    "torch.compile on a GPU": ConvolutionStack((8, 8), device=GPU, is_traced=True),
    "weights in float64": ConvolutionStack((8, 8), weight_dtype=torch.float64),
    "torch.compile": ConvolutionStack((8, 8), is_traced=True),
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_the_engine_of_a_stack(name, chosen):
    expected = DIRECT if name in DIRECT_ON else TORCH
    for channels in ((3, 8), (8, 16), (16, 16), (24, 24)):
        assert chosen(ConvolutionStack(channels), PROCESSORS[name]) is expected
    for work in NOT_DIRECT.values():
        assert suited(work) == [TORCH] or work.is_traced
        assert chosen(work, PROCESSORS[name]) is TORCH


@pytest.mark.parametrize("name", PROCESSORS)
def test_stacks_on_a_gpu_are_cudas_whatever_the_processor(name, chosen):
    for channels in ((3, 8), (3, 64), (64, 128), (192, 384)):
        for dtype in (FLOAT32, BFLOAT16):
            work = ConvolutionStack(channels, device=GPU, dtype=dtype)
            assert suited(work) == [CUDA, TORCH]
            assert chosen(work, PROCESSORS[name]) is CUDA


def test_the_compiler_is_looked_for_only_where_it_can_matter(chosen):
    """Where no engine is by numba, ``lanes`` need not be known."""
    changes = [{}, *UNSUITED.values()]
    for work, change, processor in itertools.product(WORK.values(), changes, PROCESSORS.values()):
        work = work._replace(**change)
        if not any(engine.by_numba for engine in suited(work)):
            assert chosen(work, processor) is chosen(work, replace(processor, lanes=0))


def test_small_networks_do_not_look_for_it(monkeypatch):
    looked = []
    real = engines.detected

    def detected(with_kernels):
        looked.append(with_kernels)
        return real(with_kernels)

    monkeypatch.setattr(engines, "detected", detected)
    layer, x = SameConv3x3(16, 16, bias=False), torch.randn(4, 16, 32, 32)
    assert torch.equal(layer(x), F.conv2d(x, layer.weight, padding=1))
    assert looked == [False]


def test_torch_compile_sees_a_stack_as_one_graph():
    stack, x = DownStack(8, 32, 1.0, is_first=False), torch.randn(2, 8, 16, 16)
    compiled = torch.compile(stack, backend="eager", fullgraph=True)
    with torch.no_grad():
        assert torch.allclose(compiled(x), stack(x), rtol=0, atol=1e-4)


def test_the_log_says_why_what_would_be_preferred_does_not_compute(chosen, caplog):
    work = ConvolutionStack((16, 32))
    with caplog.at_level(logging.DEBUG, "rllib_minestudio"):
        for _ in range(2):
            chosen(work, PROCESSORS["AVX2"])
        chosen(ConvolutionStack((8, 8)), PROCESSORS["no FMA"])
    first, second = (record.message for record in caplog.records)
    assert "by torch; not CUDA: it is for GPUs; not direct: channels must be among" in first
    assert "not direct: slow on this processor" in second


# ---------------------------------------------------------------------------- detection


@pytest.mark.parametrize(
    ("architecture", "features", "lanes"),
    [
        ("x86_64", "+avx,+avx2,+avx512f,+fma", 16),
        ("AMD64", "+avx512f", 16),  # which has such instructions of its own
        ("x86_64", "+avx,+avx2,-avx512f,+fma", 8),
        ("x86_64", "+avx,+avx2,-fma", 0),
        ("x86_64", "+fma4", 0),  # AMD's other instruction of that kind
        ("x86_64", "", 0),
        ("aarch64", "+neon", 8),
        ("arm64", "", 8),
        ("ppc64le", "+altivec", 0),
    ],
)
def test_the_vectors_of_a_target(architecture, features, lanes):
    assert compilation.fused_lanes(MachineTarget(architecture, "any", features)) == lanes


_FMA = """
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
define <8 x float> @multiply_and_add(<8 x float> %x, <8 x float> %y, <8 x float> %z) {
  %sum = call <8 x float> @llvm.fma.v8f32(<8 x float> %x, <8 x float> %y, <8 x float> %z)
  ret <8 x float> %sum
}
"""


@pytest.mark.parametrize(
    "target",
    [
        MachineTarget("x86_64", "emeraldrapids", "+avx2,+avx512f,+fma"),
        MachineTarget("x86_64", "haswell", "+avx2,+fma"),
        MachineTarget("x86_64", "haswell", "-avx,-avx2,-avx512f,+fma"),  # NUMBA_ENABLE_AVX=0
        MachineTarget("x86_64", "nehalem", "+avx2,+fma"),
        MachineTarget("x86_64", "sandybridge", "+avx,-avx2,-fma"),
        MachineTarget("x86_64", "generic", ""),
        MachineTarget("aarch64", "generic", ""),
    ],
    ids=str,
)
def test_llvm_has_the_instruction_where_it_is_counted_on(target):
    llvmlite.binding.initialize_all_targets()
    llvmlite.binding.initialize_all_asmprinters()
    kind = llvmlite.binding.Target.from_triple(f"{target.architecture}-unknown-linux-gnu")
    machine = kind.create_target_machine(cpu=target.name, features=target.features)
    code = machine.emit_assembly(llvmlite.binding.parse_assembly(_FMA))
    assert ("vfmadd" in code or "fmla" in code) == (compilation.fused_lanes(target) > 0)
    assert ("fmaf" in code) == (compilation.fused_lanes(target) == 0)


def test_numbas_settings_decide_what_it_compiles_for(monkeypatch):
    usual = machine_code.target()
    with monkeypatch.context() as patch:
        patch.setattr(numba.config, "ENABLE_AVX", 0)
        assert not machine_code.target().has("avx512f")
    monkeypatch.setattr(numba.config, "CPU_NAME", "haswell")
    assert machine_code.target() == usual._replace(name="haswell")
    monkeypatch.setattr(numba.config, "CPU_FEATURES", "+avx2,+fma")
    assert machine_code.target() == usual._replace(name="haswell", features="+avx2,+fma")


def test_machine_code_for_another_target_lies_in_another_folder(monkeypatch):
    names = {machine_code.fingerprint([])}
    for variable in ("CPU_NAME", "CPU_FEATURES"):
        monkeypatch.setattr(numba.config, variable, "other")
        names.add(machine_code.fingerprint([]))
    assert len(names) == 3


def test_what_is_detected_here_is_what_the_kernels_are_compiled_for():
    found = engines.detected(with_kernels=True)
    assert found.lanes == compilation.fused_lanes(machine_code.target())
    assert (found.lanes or 8) == compilation.LANES
    assert replace(found, lanes=0) == engines.detected(with_kernels=False)


# ---------------------------------------------------------------------------- other targets

_GENERIC = """
import torch
from rllib_minestudio.models.kernels import engines, winograd_calls
from rllib_minestudio.models.vpt.layers import SameConv3x3
layer, x = SameConv3x3(64, 64, bias=False), torch.randn(1, 64, 32, 32)
with torch.no_grad():
    assert torch.equal(layer(x), torch.nn.functional.conv2d(x, layer.weight, padding=1))
print(engines.detected(with_kernels=True).lanes, winograd_calls.CODE.is_compiled())
"""


def _run(*arguments, **settings):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1", **settings},
        cwd=File(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kernels_that_numba_makes_for_any_processor_are_not_used(tmp_path):
    """They would take 20 times as long as torch."""
    settings = {machine_code.CACHE_VARIABLE: str(tmp_path), "NUMBA_CPU_NAME": "generic"}
    found = _run("-c", _GENERIC, **settings)
    if machine_code.target().architecture in ("x86_64", "AMD64"):
        assert found.split() == ["0", "False"]
    else:  # every ARM multiplies and adds in one instruction
        assert found.split() == [str(compilation.LANES), "True"]


_AVX2 = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma"}
_EXACTNESS = """
import sys
import pytest
from rllib_minestudio.models.kernels import compilation as vectors
assert vectors.LANES == vectors.FUSED_LANES == 8
sys.exit(pytest.main(["-q", "-k", "float64 or bfloat16 or pool or threads", *sys.argv[1:]]))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    compilation.FUSED_LANES != 16, reason="the kernels of AVX2 or of ARM run here anyway"
)
@pytest.mark.parametrize("file", ["test_winograd.py", "test_direct.py"])
def test_the_kernels_of_avx2_are_as_exact_as_those_of_avx512(file):
    """They are other code: shorter vectors, smaller blocks."""
    _run("-c", _EXACTNESS, File(__file__).with_name(file), **_AVX2)
