/* The groups of items that stay: see stream.h. */
#include "backends/gpu/nvidia/conv/stream.h"

/* Registers for the moments of all its tiles, too. */
static bool can_keep(const fac_nv_stream *q) {
    return q->c.moments && q->t.rows * q->t.bn <= 128 && q->t.consumers == 2;
}

fac_nv_stream_crew fac_nv_stream_crew_of(const fac_gpu_limits *l, const fac_nv_stream *q,
                                         const fac_nv_phase *f) {
    const fac_nv_stream_places places = fac_nv_stream_places_of(q, &q->t, f);
    const int64_t across = fac_nv_stream_across(q), units = l->units,
                  each = (places.all + places.tile - 1) / places.tile * across,
                  tiles = each * (q->joined ? q->c.phases : 1);
    fac_nv_stream_crew c = { tiles < units ? tiles : units, across, false };
    const int64_t even = c.groups / across * across, rounds = (tiles + c.groups - 1) / c.groups;
    if (!can_keep(q) || !even || 10 * ((tiles + even - 1) / even) > 11 * rounds) return c;
    return (fac_nv_stream_crew){ even, across, true };
}

/* In all phases, or in none. */
bool fac_nv_stream_keeps(const fac_gpu_limits *l, const fac_nv_stream *q) {
    bool all = true, some = false;
    for (int i = 0; i < fac_nv_stream_launches(q); i++) {
        const fac_nv_phase f = fac_nv_phase_of(&q->c, i);
        all &= !f.pixels || fac_nv_stream_crew_of(l, q, &f).kept;
        some |= f.pixels > 0;
    }
    return all && some;
}
