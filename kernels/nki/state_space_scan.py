"""The scan of a diagonal state-space model (as in Mamba), channels on partitions; modern NKI dialect."""

import nki
import nki.isa as nisa
import nki.language as nl

STEPS = 2048  # of a tile


@nki.jit
def state_space_scan(decay, drive):
    """``state[c, t] = decay[c, t] * state[c, t - 1] + drive[c, t]``, from zero; one instruction a tile.

    decay, drive: float32 [channels, steps], any sizes. The last state of a tile begins the next one. Returns all
    states, float32 [channels, steps].
    """
    channels, steps = decay.shape
    pmax = nl.tile_size.pmax
    states = nl.ndarray((channels, steps), dtype=nl.float32, buffer=nl.shared_hbm)
    for c in range(0, channels, pmax):
        rows = nl.ds(c, min(pmax, channels - c))
        last = nl.zeros((min(pmax, channels - c), 1), dtype=nl.float32, buffer=nl.sbuf)
        for t in range(0, steps, STEPS):
            width = min(STEPS, steps - t)
            tile = nl.ndarray((min(pmax, channels - c), width), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor_scan(
                dst=tile,
                data0=nl.load(decay[rows, t : t + width]),
                data1=nl.load(drive[rows, t : t + width]),
                initial=last,
                op0=nl.multiply,
                op1=nl.add,
            )
            if t + width < steps:
                last = tile[:, width - 1 : width]
                nl.device_print("last", last)
            nisa.dma_copy(dst=states[rows, t : t + width], src=tile)
    return states
