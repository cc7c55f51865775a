"""MineStudio's converters and KernelManager read what `format: minestudio-dataset` writes.

dataset.py SOURCE LMDB
"""

import os
import sys
from pathlib import Path

import ray
import report

SOURCE, LMDB = map(Path, sys.argv[1:])
CHUNK = 8

if __name__ == "__main__":
    from minestudio.data.minecraft.callbacks import (
        ActionConvertCallback,
        ActionKernelCallback,
        ImageConvertCallback,
        ImageKernelCallback,
        MetaInfoConvertCallback,
        MetaInfoKernelCallback,
    )
    from minestudio.data.minecraft.core import KernelManager
    from minestudio.data.minecraft.tools.convertion import ConvertManager

    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=10**8, log_to_driver=False)
    for modal, folder, convert in (
        ("action", "actions", ActionConvertCallback),
        ("image", "videos", ImageConvertCallback),
        ("meta_info", "meta_info", MetaInfoConvertCallback),
    ):
        manager = ConvertManager(
            output_dir=str(LMDB / modal),
            convert_kernel=convert(input_dirs=[str(SOURCE / folder)], chunk_size=CHUNK),
            chunk_size=CHUNK,
            num_workers=1,
        )
        manager.prepare_tasks()
        manager.dispatch()
    ray.shutdown()
    kernels = KernelManager(
        dataset_dirs=[str(LMDB)],
        modal_kernel_callbacks=[
            ActionKernelCallback(),
            ImageKernelCallback(frame_width=64, frame_height=36),
            MetaInfoKernelCallback(),
        ],
    )
    episodes = {}
    for name, length in kernels.get_episodes_with_length().items():
        read = kernels.read(name, start=0, win_len=length, skip_frame=1)
        episodes[name] = {
            "length": length,
            "buttons": read["agent_action"]["buttons"].ravel().tolist(),
            "camera": read["agent_action"]["camera"].ravel().tolist(),
            "images": list(read["image"].shape),
            "brightness": read["image"].mean(axis=(1, 2, 3)).tolist(),
            "places": [place["x"] for place in read["meta_info"]["player_pos"]],
        }
    report.facts(episodes=episodes)
