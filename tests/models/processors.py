"""Processors that tests pretend to run on; each takes engines that this machine can run.

oneDNN computes in bfloat16 only where it is able to. The kernels run everywhere.
"""

from dataclasses import replace

from rllib_minestudio.models.kernels.compilation import LANES
from rllib_minestudio.models.kernels.engines import Processor, detected

WITH_KERNELS = replace(detected(with_kernels=True), lanes=LANES, amx=False)
TORCH_ALONE = Processor(lanes=0, amx=False, onednn=False, onednn_bfloat16=False)

PRETENDED = {
    "kernels": WITH_KERNELS,
    "AMX": replace(WITH_KERNELS, amx=True),
    "no kernels": replace(WITH_KERNELS, lanes=0),
    "kernels, no bfloat16": replace(WITH_KERNELS, onednn_bfloat16=False),
    "no kernels, no bfloat16": replace(WITH_KERNELS, lanes=0, onednn_bfloat16=False),
    "torch alone": TORCH_ALONE,
}
