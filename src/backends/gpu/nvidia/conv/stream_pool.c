/* conv2d_max_pool on conv/wgmma_stream: its tiles, and the positions that they run over
 * (nv_conv_stream_pool.cl). */
#include "backends/gpu/nvidia/conv/stream.h"

/* Letters as in stream_tiles.c.  Two teams where a tile is short, as one finishes while the
 * other one multiplies. */
static const fac_nv_stream_tile tiles[] = {
    { 2, 1, 2, 64, 0, true, 0, 0, 0 },
    { 2, 2, 2, 64, 0, true, 0, 0, 0 },
    { 2, 1, 2, 128, 0, true, 0, 0, 0 },
    { 2, 2, 2, 128, 0, true, 0, 0, 0 },
};

const fac_nv_stream_tile *fac_nv_stream_pool_tiles(int *count) {
    *count = (int)(sizeof tiles / sizeof *tiles);
    return tiles;
}

fac_nv_stream_places fac_nv_stream_places_of(const fac_nv_stream *q, const fac_nv_stream_tile *t,
                                             const fac_nv_phase *f) {
    const int32_t h = f->axis[1].out, w = f->axis[2].out, tile = fac_nv_stream_rows(t);
    fac_nv_stream_places s = { .line = w + t->halo, .tile = tile };
    s.image = (h + t->halo) * s.line;
    if (q->c.pooled) {
        s.line = (w + 2) / 2 * 2;
        s.image = h / 2 * s.line;
        s.tile = tile / 2;
    }
    s.all = q->c.g.N * s.image;
    return s;
}
