#include "backends/cpu/device/speed.h"

const fac_cpu_speed fac_cpu_speeds = {
    .hertz = 3e9,
    .unit_flops = 4, /* two fused multiply-adds */
    .memory = 20e9,
    .step = 1e-6,
    .row_step = 0.8e-6,
    .pack_step = 2e-6,
    .bits_step = 2e-6,
    .table_step = 3e-6,
    .chunk = 2e-6,
    .reorder = 1e-6,
    .reordered = 24e9,
    .chain_bytes = 32e9,
    .exponentials = 1e9,
    .window_sums = 4e9,
    .byte_pack = 5e8,
    .gathered = 1e-9,
    .scattered = 2e-9,
    .random = 2e-9,
    .dropped = 2e-8,
    .tree_node = 2e-9,
    .column_run = 10e-9,
    .column = 0.1e-9,
    .column_far = 0.7e-9,
};
