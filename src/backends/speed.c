#include "backends/speed.h"

const fac_last_speed fac_last_speeds = {
    .ref_step = 1e-5,
    .ref_element = 5e-9,
    .ref_mac = 2e-9,
    .fallback_step = 1e-3,
    .fallback_bytes = 1e9,
    .unsolved = 1e-3,
};
