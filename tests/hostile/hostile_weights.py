"""Weight files that somebody made to do harm, and damaged ones."""

from __future__ import annotations

import io
import json
import os
import pickle
import pickletools
import struct
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import torch
from judging import ACCEPTED, Case
from safetensors.torch import save

from rllib_minestudio.models.vpt.config import VPTConfig
from rllib_minestudio.models.vpt.network import VPTNetwork
from rllib_minestudio.models.vpt.weights import arguments_from_config


@cache
def network() -> VPTNetwork:
    torch.set_num_threads(1)
    return VPTNetwork(
        VPTConfig(
            img_shape=(16, 16, 3),
            impala_width=0.25,
            hidsize=16,
            attention_heads=2,
            n_recurrence_layers=1,
            attention_memory_size=12,
            timesteps=8,
        )
    )


def arguments() -> dict:
    return arguments_from_config(network().config)


def state() -> dict:
    return {name: tensor.clone() for name, tensor in network().state_dict().items()}


def look(source) -> str:
    """What `rllib model info` and every loader do."""
    from rllib_minestudio import checkpoints
    from rllib_minestudio.errors import CheckpointMismatchError
    from rllib_minestudio.models.vpt.weights import load_weights, summarize

    checkpoint = checkpoints.open(source)
    summary = summarize(checkpoint)
    if summary.problems:
        raise CheckpointMismatchError(summary.problems[0])
    if summary.expected != len(network().state_dict()):
        return "another network"
    load_weights(network(), checkpoint)
    return "loaded"


def export(paths) -> str:
    from rllib_minestudio import checkpoints
    from rllib_minestudio.models.vpt.weights import export_checkpoint

    source, folder = paths
    export_checkpoint(checkpoints.open(source), folder)
    return "exported"


# ---------------------------------------------------------------- pickles


class Call:
    """Pickles as a call of anything."""

    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


def _op(name: str) -> bytes:
    return next(op.code for op in pickletools.opcodes if op.name == name).encode("latin1")


def _global(module: str, name: str) -> bytes:
    return b"c" + f"{module}\n{name}\n".encode()


OBJECT_AT_ADDRESS = (
    # ndarray((1,), dtype("O"), buffer=b"AAAAAAAA"): an object at the address 0x4141414141414141.
    b"\x80\x04"
    + _global("numpy", "ndarray")
    + b"(K\x01\x85"
    + _global("numpy", "dtype")
    + b"(X\x01\x00\x00\x00O\x89\x88tRC\x08AAAAAAAAtR."
)

FORGED_DTYPE = (
    # dtype("f8").__setstate__ with the flags and fields of another one.
    b"\x80\x04"
    + _global("numpy.core.multiarray", "_reconstruct")
    + b"("
    + _global("numpy", "ndarray")
    + b"K\x00\x85C\x01btR(K\x01K\x01\x85"
    + _global("numpy", "dtype")
    + b"(X\x03\x00\x00\x00V16\x89\x88tR(K\x03X\x01\x00\x00\x00|N"
    + b"X\x01\x00\x00\x00a\x85}X\x01\x00\x00\x00a"
    + _global("numpy", "dtype")
    + b"(X\x02\x00\x00\x00O8\x89\x88tR"
    + b"(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb"
    + b"K\x00\x86s"
    + b"K\x10K\x01K\x1ftb\x89C\x10AAAAAAAAAAAAAAAAtb."
)


def _array_pickle(spec: bytes, shape: bytes, data: bytes) -> bytes:
    return (
        b"\x80\x04"
        + _global("numpy.core.multiarray", "_reconstruct")
        + b"("
        + _global("numpy", "ndarray")
        + b"K\x00\x85C\x01btR(K\x01"
        + shape
        + _global("numpy", "dtype")
        + b"(X"
        + struct.pack("<I", len(spec))
        + spec
        + b"\x89\x88tR\x89C"
        + bytes([len(data)])
        + data
        + b"tb."
    )


def pickles() -> Iterator[tuple[str, bytes]]:
    """Contents of a file that should hold a pickle of plain data."""
    yield "object at an address", OBJECT_AT_ADDRESS
    yield "forged dtype", FORGED_DTYPE
    yield "array of objects", pickle.dumps(np.array([{}, []], object))
    yield "array of structures", pickle.dumps(np.zeros(3, [("a", "f4"), ("b", "O")]))
    yield "array larger than its bytes", _array_pickle(b"f8", b"J\x00\x00\x00\x10\x85", b"12345678")
    yield "array of a negative shape", _array_pickle(b"f8", b"J\xff\xff\xff\xff\x85", b"12345678")
    yield "array of a dtype with commas", _array_pickle(b"f8,O", b"K\x01\x85", b"1" * 16)
    yield "array with an immense item", _array_pickle(b"V2147483647", b"K\x01\x85", b"1")
    yield (
        "array without contents",
        b"\x80\x04"
        + _global("numpy.core.multiarray", "_reconstruct")
        + (b"(" + _global("numpy", "ndarray") + b"J\xff\xff\xff\x0f\x85C\x01btR."),
    )
    for function in (os.system, eval, exec, __import__, open, getattr, Path.unlink):
        yield f"calls {function.__name__}", pickle.dumps(Call(function, "1"))
    yield "numpy.load", b"\x80\x04" + _global("numpy", "load") + b"X\x01\x00\x00\x00a\x85R."
    yield "dotted name", b"\x80\x04\x8c\x02os\x8c\x06system\x93X\x01\x00\x00\x00a\x85R."
    yield (
        "a name of numpy's that runs code",
        (b"\x80\x04" + _global("numpy.testing._private.utils", "runstring") + b"."),
    )
    yield "memo in the billions", b"\x80\x02]r\xff\xff\xff\x7f."
    yield "memo by text", b"\x80\x02]p4000000000\n."
    yield "frame longer than the file", b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x0f]."
    yield "bytes longer than the file", b"\x80\x04\x8e\xff\xff\xff\xff\xff\x00\x00\x00a."
    yield "bytearray longer than the file", b"\x80\x05\x96\xff\xff\xff\x7f\x00\x00\x00\x00a."
    yield "text longer than the file", b"\x80\x04X\xff\xff\xff\x7fabc."
    yield "millions of sets", b"\x80\x04(" + b"\x8f" * 8_000_000 + b"l."
    yield "millions of lists", b"\x80\x04(" + b"]" * 30_000_000 + b"l."
    yield "millions of dicts with an entry", b"\x80\x04(" + b"}K\x00Ns" * 4_000_000 + b"l."
    yield "millions of marks", b"\x80\x04" + b"(" * 40_000_000
    yield (
        "a list that is copied over and over",
        (
            b"\x80\x04("
            + b"N" * 100_000
            + b"lq\x00("
            + (_global("builtins", "list") + b"q\x010")
            + b"("
            + (b"h\x01h\x00\x85R") * 40_000
            + b"l."
        ),
    )
    yield "nested lists", b"\x80\x04" + b"]" * 5000 + b"a" * 4999 + b"."
    yield "nested tuples", b"\x80\x04)" + b"\x85" * 200_000 + b"."
    yield "contains itself", b"\x80\x04]q\x00h\x00a."
    yield (
        "alias bomb",
        (
            b"\x80\x04]q\x00"
            + b"".join(
                b"0(" + b"h" + bytes([i]) + (b"h" + bytes([i])) * 9 + b"lq" + bytes([i + 1])
                for i in range(60)
            )
            + b"."
        ),
    )
    yield "an integer of a million digits", b"\x80\x02L" + b"9" * 1_000_000 + b"L\n."
    yield (
        "an integer of a megabyte",
        b"\x80\x02\x8b" + struct.pack("<i", 2**20) + b"\x7f" * 2**20 + b".",
    )
    yield "empty", b""
    yield "only a stop", b"."
    yield "no pickle", b"\x89PNG\r\n\x1a\n" + bytes(100)
    yield "text", "Grüße".encode()
    yield "pops an empty stack", b"\x80\x0400000."
    yield "unknown protocol", b"\x80\xff]."
    yield "an extension", b"\x80\x02\x82\x01."
    yield "a persistent id", b"\x80\x04K\x01Q."


def _openai(content: bytes):
    def prepare(folder: Path):
        (folder / "x.model").write_bytes(content)
        torch.save(state(), folder / "x.weights")
        return str(folder / "x.model")

    return prepare


def _described(**changes):
    def prepare(folder: Path):
        config = {"policy_kwargs": {**arguments(), **changes}, "temperature": 1.0}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "model.safetensors").write_bytes(save(state()))
        return str(folder)

    return prepare


def _with_config(text: str | bytes):
    def prepare(folder: Path):
        (folder / "config.json").write_bytes(text if isinstance(text, bytes) else text.encode())
        (folder / "model.safetensors").write_bytes(save(state()))
        return str(folder)

    return prepare


def descriptions() -> Iterator[Case]:
    """Hugging Face folders whose `config.json` lies."""
    sizes = ("hidsize", "n_recurrence_layers", "attention_heads", "attention_memory_size")
    for name in (*sizes, "timesteps", "pointwise_ratio", "impala_width"):
        for value in (10**7, 10**400, -1, 0, 1.5, float("nan"), float("inf"), "4", None, [1], {}):
            if value is None or (name == "impala_width" and value == 1.5):
                continue
            yield Case(f"{name}: {str(value)[:20]}", _described(**{name: value}), look)
    for value in ([10**6, 10**6, 3], [0, 0, 3], [-8, -8, 3], [16], "16", [[16], 16, 3], 5, {}):
        yield Case(f"img_shape: {value}", _described(img_shape=value), look)
    for value in ([10**9], [], [0], [-1], ["a"], [1] * 10_000, [[1]], 3):
        yield Case(f"impala_chans: {str(value)[:30]}", _described(impala_chans=value), look)
    yield Case("recurrence_type", _described(recurrence_type={"a": [1]}), look)
    texts = {
        "nested": "[" * 100_000,
        "no mapping": "[1, 2]",
        "no arguments": "{}",
        "arguments a list": '{"policy_kwargs": [1]}',
        "arguments a text": '{"policy_kwargs": "abc"}',
        "temperature nan": json.dumps({"policy_kwargs": arguments(), "temperature": float("nan")}),
        "temperature a list": json.dumps({"policy_kwargs": arguments(), "temperature": [1]}),
        "temperature 0": json.dumps({"policy_kwargs": arguments(), "temperature": 0}),
        "temperature 1e400": json.dumps({"policy_kwargs": arguments()})[:-1]
        + ', "temperature": 1e400}',
        "a number of many digits": '{"policy_kwargs": {"hidsize": ' + "9" * 5000 + "}}",
        "cut off": json.dumps({"policy_kwargs": arguments()})[:-9],
        "immense": " " * 40_000_000 + "{}",
    }
    for name, text in texts.items():
        yield Case(f"config.json {name}", _with_config(text), look)
    yield Case("config.json is no text", _with_config(b"\xff\xfe\x00\x80"), look)

    def fifo(folder: Path):
        os.mkfifo(folder / "config.json")
        (folder / "model.safetensors").write_bytes(save(state()))
        return str(folder)

    def fifo_weights(folder: Path):
        (folder / "config.json").write_text(json.dumps({"policy_kwargs": arguments()}))
        os.mkfifo(folder / "model.safetensors")
        return str(folder)

    def fifo_model(folder: Path):
        os.mkfifo(folder / "x.model")
        torch.save(state(), folder / "x.weights")
        return [str(folder / "x.model"), str(folder / "x.weights")]

    yield Case("config.json is a named pipe", fifo, look)
    yield Case("model.safetensors is a named pipe", fifo_weights, look)
    yield Case(".model is a named pipe", fifo_model, look)

    def large_export(folder: Path):
        source = folder / "in"
        source.mkdir()
        _described(hidsize=8192, attention_heads=8, n_recurrence_layers=8)(source)
        return str(source), str(folder / "out")

    yield Case("a description of a network of gigabytes is exported", large_export, export)


# ---------------------------------------------------------------- tensors


def _safetensors(header, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor_files() -> Iterator[tuple[str, str, bytes]]:
    """Name, file name, contents."""
    good = save(state())
    yield "header length", "a.safetensors", struct.pack("<Q", 2**60) + b"{}"
    yield "header longer than the file", "a.safetensors", struct.pack("<Q", 10**6) + b"{}"
    yield "no JSON", "a.safetensors", _safetensors(b"{{{{")
    yield "empty", "a.safetensors", b""
    yield (
        "offsets",
        "a.safetensors",
        _safetensors(
            {"net.final_ln.weight": {"dtype": "F32", "shape": [16], "data_offsets": [0, 10**12]}}
        ),
    )
    yield (
        "negative offsets",
        "a.safetensors",
        _safetensors(
            {"net.final_ln.weight": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}},
            bytes(4),
        ),
    )
    yield (
        "shape",
        "a.safetensors",
        _safetensors(
            {"net.final_ln.weight": {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 0]}}
        ),
    )
    yield (
        "dtype",
        "a.safetensors",
        _safetensors(
            {"net.final_ln.weight": {"dtype": "X9", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)
        ),
    )
    yield "nested header", "a.safetensors", _safetensors(b"[" * 100_000)
    for share in (0.01, 0.5, 0.999):
        yield f"cut at {share}", "a.safetensors", good[: int(len(good) * share)]
    for kind, content in (("zip", _saved(state())), ("legacy", _saved(state(), False))):
        for share in (0.0, 0.01, 0.1, 0.5, 0.9, 0.999):
            yield f"{kind} cut at {share}", "a.pt", content[: int(len(content) * share)]
    yield from ((name, "a.pt", content) for name, content in torch_states())


def _saved(content, is_zip: bool = True) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream, _use_new_zipfile_serialization=is_zip)
    return stream.getvalue()


def torch_states() -> Iterator[tuple[str, bytes]]:
    one = torch.ones(1)
    wide = {name: one.as_strided(t.shape, [0] * t.dim()) for name, t in state().items()}
    layer = {n: t for n, t in state().items() if ".blocks.0." in n}
    yield (
        "stride 0, millions wide",
        _saved({**state(), "net.final_ln.weight": one.as_strided([10**9], [0])}),
    )
    yield (
        "stride 0, all of them",
        _saved({**wide, "net.final_ln.weight": one.as_strided([10**6], [0])}),
    )
    yield (
        "a thousand layers that share one",
        _saved(
            {
                **state(),
                **{
                    n.replace(".blocks.0.", f".blocks.{i}."): t
                    for i in range(1000)
                    for n, t in layer.items()
                },
            }
        ),
    )
    yield (
        "sparse",
        _saved(
            {
                **state(),
                "net.final_ln.weight": torch.sparse_coo_tensor(size=(10**9,), dtype=torch.float32),
            }
        ),
    )
    yield "integers", _saved({**state(), "net.final_ln.weight": torch.ones(16, dtype=torch.int64)})
    yield (
        "complex",
        _saved({**state(), "net.final_ln.weight": torch.ones(16, dtype=torch.complex64)}),
    )
    yield "nan", _saved({**state(), "net.final_ln.weight": torch.full((16,), float("nan"))})
    yield "infinite", _saved({**state(), "net.final_ln.bias": torch.full((16,), float("inf"))})
    yield "no dimensions", _saved({**state(), "net.final_ln.weight": torch.ones(())})
    yield "no elements", _saved({**state(), "net.final_ln.weight": torch.ones(0)})
    yield "another shape", _saved({**state(), "net.final_ln.weight": torch.ones(17)})
    yield "a missing tensor", _saved({n: t for n, t in state().items() if "final_ln.bias" not in n})
    yield "one more tensor", _saved({**state(), "net.extra": torch.ones(1)})
    yield "numbers as names", _saved({1: torch.ones(1), 2: torch.ones(1)})
    yield "a list", _saved([torch.ones(1)])
    yield "a tensor", _saved(torch.ones(3))
    yield "nothing", _saved({})
    yield "a call", _saved({**state(), "x": Call(os.system, "true > /tmp/x")}, False)
    yield "a call in a zip", _saved([Call(os.system, "true")])
    for name, size in (("deflated", 10_000_000), ("deflated lists", 100_000_000)):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            with archive.open("archive/data.pkl", "w", force_zip64=True) as member:
                member.write(b"\x80\x02")
                for _ in range(size // 10_000_000):
                    member.write(b"]" * 10_000_000)
            archive.writestr("archive/version", "3\n")
        yield name, stream.getvalue()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02(" + b"]" * 3_000_000 + b"l.")
        archive.writestr("archive/version", "3\n")
    yield "stored lists", stream.getvalue()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("other.txt", b"abc")
    yield "another zip", stream.getvalue()


def _file(name: str, content: bytes):
    def prepare(folder: Path):
        (folder / name).write_bytes(content)
        return str(folder / name)

    return prepare


def cases() -> Iterator[Case]:
    model = {
        "model": {"args": {"net": {"args": arguments()}, "pi_head_opts": {"temperature": 2.0}}}
    }
    yield Case("honest .model", _openai(pickle.dumps(model)), look, ACCEPTED)
    yield Case("honest folder", _described(), look, ACCEPTED)
    yield Case("honest zip", _file("a.pt", _saved(state())), look, ACCEPTED)
    yield Case("honest legacy", _file("a.pt", _saved(state(), False)), look, ACCEPTED)
    for name, content in pickles():
        yield Case(f".model: {name}", _openai(content), look)
    for changes in ({"hidsize": np.zeros(5)}, {"recurrence_type": np.zeros(5)}, {"img_shape": 3}):
        args = {**arguments(), **changes}
        wrong = {"model": {"args": {"net": {"args": args}}}}
        yield Case(f".model: {list(changes)} an array", _openai(pickle.dumps(wrong)), look)
    for name, value in {"an array": np.arange(3), "a number": np.int64(3), "pairs": [[1]]}.items():
        for place, content in {
            "everything": value,
            "the model": {"model": value},
            "its arguments": {"model": {"args": value}},
            "the network": {"model": {"args": {"net": value}}},
            "the network's arguments": {"model": {"args": {"net": {"args": value}}}},
            "the head": {"model": {"args": {"net": {"args": arguments()}, "pi_head_opts": value}}},
        }.items():
            yield Case(f".model: {place} is {name}", _openai(pickle.dumps(content)), look)
    yield from descriptions()
    for name, file, content in tensor_files():
        yield Case(f"{file}: {name}", _file(file, content), look)
    arrays = {name: tensor.numpy() for name, tensor in state().items()}
    yield Case("honest .pkl", _file("a.pkl", pickle.dumps(arrays)), look, ACCEPTED)
    yield Case(".pkl of objects", _file("a.pkl", pickle.dumps({"a": np.array([{}], object)})), look)
    for name, content in pickles():
        if name in ("object at an address", "forged dtype", "millions of sets", "alias bomb"):
            yield Case(f".pkl: {name}", _file("a.pkl", content), look)
