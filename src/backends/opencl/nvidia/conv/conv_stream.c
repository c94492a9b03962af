/* The solver conv/wgmma_stream: see conv_stream.h.  Forward convolutions and their gradients by x
 * with channels in multiples of 16 bytes: f32 in TF32 (precision high) or by three products of
 * TF32, bf16 and f16.  The phases of gradients with strides of 2 are one launch, those of others
 * one each.  Convolutions of 3 x 3 may have a max pool of 2 x 2 after them (conv_stream_pool.c).
 */
#include <stdlib.h>
#include "backends/draft.h"
#include "backends/gpu/nvidia/divide.h"
#include "backends/opencl/nvidia/conv/conv_stream.h"
#include "backends/opencl/nvidia/unit/pack.h"
#include "backends/gpu/nvidia/speed.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor_internal.h"

enum { VERSION = 4, TAPS = 32, PIECE = 16, JOINED = 4 };

/* As the kernel has them. */
typedef struct divisor {
    uint32_t multiplier, shift;
} divisor;
typedef struct axis {
    int32_t in, out, origin, stride, far, taps;
} axis;
typedef struct sizes {
    int64_t x, w, moments, maps;
    int32_t positions, tiles, across, rows, blocks, pieces, x_image, x_row, x_column, image, line;
    divisor by_image, by_line;
    axis tall, wide;
    int32_t parts, first_part, each, each_part, step_row, step_column, row, column, order;
    axis tall1, wide1;
    int64_t to_next[JOINED - 1];
} sizes;
typedef struct endings {
    int64_t first, second, var, done;
} endings;

typedef struct plan {
    fac_nv_stream q;
    fac_cl_kernel kernel, pack, moments;
    fac_span done;  /* groups that left their moments, by blocks of channels: zero between runs */
    size_t counted; /* bytes of it */
} plan;

static size_t bytes_of(fac_dtype t) { return (size_t)fac_dtype_get(t)->block_bytes; }

/* ---- reading ---- */

/* All taps of a 3 x 3 window around the pixel itself. */
static bool has_halo(const fac_nv_phase *f) {
    for (int d = 1; d < 3; d++) {
        const fac_nv_axis *a = &f->axis[d];
        if (a->taps != 3 || a->stride != 1 || a->in != a->out || abs(a->far) != 1 ||
            a->origin != -a->far)
            return false;
    }
    return true;
}

static bool by_sixteen(const fac_nv_place *p, int bytes) {
    return ((p->at | p->image | p->row | p->column) * bytes & (PIECE - 1)) == 0;
}

/* Which extras differ between pixels, and whether the only one of them can come through local
 * memory. */
static void read_extras(fac_nv_stream *q) {
    const fac_gpu_product *r = &q->c.r;
    q->moving = q->added = 0;
    q->rows16 = by_sixteen(&q->c.ends.p[0], q->bytes) && q->c.rows * q->bytes % PIECE == 0;
    for (int i = 0; i < r->extras; i++) {
        const fac_nv_place *p = &q->c.ends.p[1 + i];
        if (!(p->image | p->row | p->column) && p->apart < 2) continue;
        q->moving++;
        const bool fits = p->apart < 2 && fac_nv_run_of(p) == FAC_NV_FOURS &&
                          by_sixteen(p, q->bytes) && p->column;
        if (fits && bytes_of(r->extra_dtype[i]) == (size_t)q->bytes &&
            r->extra_dtype[i] == r->result)
            q->added = 1 + i;
    }
    if (q->moving > 1) q->added = 0;
}

bool fac_nv_stream_read(fac_opencl *o, fac_problem *p, fac_nv_stream *q) {
    *q = (fac_nv_stream){ .halo = false };
    if (!fac_nv_conv_read(o, p, &q->c)) return false;
    const fac_nv_conv *c = &q->c;
    const bool f32 = c->r.dtype == FAC_F32;
    if (c->few || c->groups != 1 || (f32 && c->mode == FAC_NV_BF16)) return false;
    q->packing =
        (fac_nv_packing){ .terms = f32 ? 32 : 64, .mode = c->mode, .order = FAC_NV_IN_ORDER };
    for (int i = 0; i < c->phases; i++) {
        const fac_nv_phase f = fac_nv_phase_of(c, i);
        if (f.axis[0].in != 1 || f.axis[0].out != 1 || f.axis[0].taps != 1 || f.axis[0].origin)
            return false;
        const double padded = (double)c->g.N * (f.axis[1].out + 1) * (f.axis[2].out + 1);
        if (padded > INT32_MAX / 2) return false;
        q->halo = c->phases == 1 && has_halo(&f);
        q->windows |= f.taps > 1;
        q->step = fac_nv_stream_step(c, &f);
        if (f.taps > TAPS) return false;
    }
    const int64_t *stride = c->g.stride;
    q->joined = c->phases > 1 && stride[0] == 1 && stride[1] <= 2 && stride[2] <= 2;
    if (c->pooled && !q->halo) return false;
    q->bytes = (int)bytes_of(c->r.result);
    q->maps = q->step ? fac_nv_maps_of(o) : 0;
    read_extras(q);
    return fac_nv_stream_choose(&o->limits, p->variant, fac_nv_conv_bytes(p), q);
}

/* Parts are what a group kept, or 64 positions. */
static int64_t parts_of(const fac_opencl *o, const fac_nv_stream *q, const fac_nv_phase *f) {
    const fac_nv_stream_crew c = fac_nv_stream_crew_of(&o->limits, q, f);
    if (!f->pixels) return 0;
    if (q->kept) return c.groups / c.across;
    return (fac_nv_stream_places_of(q, &q->t, f).all + FAC_NV_PART_ROWS - 1) / FAC_NV_PART_ROWS *
           (q->joined ? q->c.phases : 1);
}
static fac_nv_moments moments_of(const fac_opencl *o, const fac_nv_stream *q) {
    fac_nv_moments m = { 0, q->c.rows };
    for (int i = 0; i < fac_nv_stream_launches(q); i++) {
        const fac_nv_phase f = fac_nv_phase_of(&q->c, i);
        m.parts += parts_of(o, q, &f);
    }
    return m;
}
static size_t moments_bytes(const fac_opencl *o, const fac_nv_stream *q) {
    const fac_nv_moments m = moments_of(o, q);
    if (!q->c.moments) return 0;
    return fac_nv_moments_bytes(&m) +
           (q->kept ? (size_t)(m.parts * (fac_nv_stream_across(q) - 1)) * sizeof(float) : 0);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    fac_nv_stream q;
    if (!fac_cl_has_path(o, FAC_CL_WGMMA) || !fac_nv_stream_read(o, p, &q)) return false;
    *FAC_DRAFT(offer, fac_nv_stream) = q;
    offer->seconds = q.seconds;
    offer->variants = fac_nv_stream_variants();
    offer->version = VERSION;
    offer->work = moments_bytes(o, &q) + (q.maps ? fac_nv_maps_bytes(o, 1) : 0);
    offer->packed[1] = fac_nv_packed_bytes(&q.c, &q.packing);
    if (p->in[1].time == FAC_RUN)
        offer->seconds += fac_nv_speeds.pack_launch +
                          2 * (double)offer->packed[1] / fac_gpu_bandwidth(&o->limits);
    return true;
}

/* ---- the plan ---- */

static void done(fac_device *d, void *arg) {
    plan *q = arg;
    if (!q) return;
    fac_cl_kernel_free(fac_opencl_of(d), &q->kernel);
    fac_cl_kernel_free(fac_opencl_of(d), &q->pack);
    fac_cl_kernel_free(fac_opencl_of(d), &q->moments);
    fac_device_release(d, q->done.memory, q->counted);
    fac_release(q);
}

static fac_status make_counters(fac_device *d, plan *q, fac_error *err) {
    const size_t blocks = (size_t)fac_nv_stream_across(&q->q), bytes = blocks * sizeof(uint32_t);
    uint32_t *zeros = fac_alloc(blocks, sizeof *zeros);
    if (!zeros) return fac_raise_memory(err, "%zu counters", blocks);
    fac_status status = fac_device_alloc(d, bytes, &q->done.memory, err);
    q->counted = status ? 0 : bytes;
    if (!status) status = d->backend->write(d, q->done, zeros, bytes, err);
    fac_release(zeros);
    return status;
}

static fac_status build(fac_device *d, const fac_problem *p, plan *q, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    fac_text text = { 0 };
    q->q = *(const fac_nv_stream *)p->draft;
    FAC_TRY(fac_nv_pack_make(o, &q->q.c, &q->q.packing, &q->pack, err));
    const fac_nv_moments m = moments_of(o, &q->q);
    if (q->q.kept) FAC_TRY(make_counters(d, q, err));
    if (q->q.c.moments && !q->q.kept)
        FAC_TRY(fac_nv_moments_make(o, &q->q.c, &m, &q->moments, err));
    fac_status status = fac_nv_stream_text(&q->q, o->limits.fp64, &text)
                            ? fac_cl_kernel_new(o, text.s, fac_cl_options(&q->q.c.r), "conv_stream",
                                                &q->kernel, err)
                            : fac_raise_memory(err, "the text of a kernel");
    fac_text_free(&text);
    return status;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    fac_status status = build(d, p, q, err);
    return fac_solver_made(status, d, q, done, out);
}

static uint64_t pack_key(const void *arg, int input) {
    const plan *q = arg;
    return fac_nv_pack_key(&q->q.c, &q->q.packing, input);
}

fac_nv_weights fac_nv_conv_wgmma_stream_weights(const void *arg) {
    const plan *q = arg;
    return (fac_nv_weights){ &q->q.c, &q->q.c, &q->q.packing };
}

static fac_status pack(const void *arg, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *q = arg;
    (void)input;
    return fac_nv_pack_run(fac_opencl_of(d), &q->q.c, &q->q.packing, &q->pack, from, to, err);
}

/* ---- run ---- */

static divisor divisor_of(int32_t d) {
    const fac_nv_divisor by = fac_nv_divide((uint32_t)d);
    return (divisor){ by.multiplier, by.shift };
}

static axis axis_of(const fac_nv_axis *a) {
    return (axis){ a->in, a->out, a->origin, a->stride, a->far, a->taps };
}

static sizes sizes_of(const fac_nv_stream *q, const fac_nv_phase *f) {
    const fac_nv_conv *c = &q->c;
    const fac_nv_stream_tile *t = &q->t;
    const int pieces = PIECE / (int)bytes_of(c->r.dtype);
    const fac_nv_stream_places places = fac_nv_stream_places_of(q, t, f);
    sizes s = { .rows = c->rows,
                .blocks = fac_nv_stream_blocks(q),
                .pieces = c->channels / pieces };
    s.tall = axis_of(&f->axis[1]);
    s.wide = axis_of(&f->axis[2]);
    s.x_image = c->x.image / pieces;
    s.x_row = c->x.row / pieces;
    s.x_column = (q->maps ? q->step : c->x.column) / pieces;
    s.line = places.line;
    s.image = places.image;
    s.positions = (int32_t)places.all;
    s.across = (c->rows + t->bn - 1) / t->bn;
    s.tiles = (s.positions + places.tile - 1) / places.tile * s.across;
    s.by_image = divisor_of(s.image);
    s.by_line = divisor_of(s.line);
    return s;
}

static int64_t weights_at(const fac_nv_stream *q, fac_span w, int phase) {
    return (int64_t)((fac_cl_at(w) + fac_nv_packed_at(&q->c, &q->packing, phase)) / PIECE);
}

/* The phases of one launch, those with most taps first. */
static void join_phases(const fac_nv_stream *q, fac_span w, sizes *s) {
    const fac_conv_geom *g = &q->c.g;
    int phase[JOINED], taps[JOINED];
    for (int i = 0; i < q->c.phases; i++) {
        const int own = fac_nv_phase_of(&q->c, i).taps;
        int k = i;
        for (; k > 0 && taps[k - 1] < own; k--) {
            phase[k] = phase[k - 1];
            taps[k] = taps[k - 1];
        }
        phase[k] = i;
        taps[k] = own;
    }
    const int across = (int)g->stride[2], last = q->c.phases - 1;
    const fac_nv_phase end = fac_nv_phase_of(&q->c, last);
    s->tall1 = axis_of(&end.axis[1]);
    s->wide1 = axis_of(&end.axis[2]);
    s->step_row = (int32_t)g->stride[1];
    s->step_column = across;
    s->each = s->tiles;
    s->tiles *= q->c.phases;
    s->each_part = (s->positions + FAC_NV_PART_ROWS - 1) / FAC_NV_PART_ROWS;
    s->w = weights_at(q, w, phase[0]);
    for (int k = 0; k < q->c.phases; k++) {
        s->order |= (phase[k] / across | phase[k] % across << 1) << 2 * k;
        if (k) s->to_next[k - 1] = weights_at(q, w, phase[k]) - weights_at(q, w, phase[k - 1]);
    }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *made = arg;
    const fac_nv_stream *q = &made->q;
    const fac_gpu_product *r = &q->c.r;
    fac_opencl *o = fac_opencl_of(d);
    const fac_nv_moments m = moments_of(o, q);
    int32_t first = 0;
    for (int i = 0; i < fac_nv_stream_launches(q); i++) {
        const fac_nv_phase f = fac_nv_phase_of(&q->c, i);
        if (!f.pixels) continue;
        const fac_nv_stream_crew c = fac_nv_stream_crew_of(&o->limits, q, &f);
        sizes s = sizes_of(q, &f);
        fac_nv_ends e = q->joined ? q->c.ends : fac_nv_phase_ends(&q->c, &f);
        s.x = (int64_t)((fac_cl_at(in[0]) + (size_t)q->c.x.at * bytes_of(r->dtype)) / PIECE);
        s.w = weights_at(q, in[1], i);
        if (q->joined) join_phases(q, in[1], &s);
        e.p[0].at += (int64_t)(fac_cl_at(out[0]) / (size_t)q->bytes);
        if (q->c.moments) {
            s.moments = (int64_t)(fac_cl_at(work) / sizeof(float));
            s.parts = (int32_t)m.parts;
        }
        if (q->maps) s.maps = (int64_t)(fac_cl_at(work) + moments_bytes(o, q));
        s.first_part = first;
        first += (int32_t)parts_of(o, q, &f);
        fac_cl_arg args[12 + FAC_GPU_EXTRAS] = { fac_cl_arg_value(&s, sizeof s),
                                                 fac_cl_arg_value(&e, fac_nv_ends_bytes(r)),
                                                 fac_cl_arg_span(in[0]), fac_cl_arg_span(in[1]),
                                                 fac_cl_arg_span(out[0]) };
        for (int k = 0; k < r->extras; k++) {
            const fac_span x = in[r->input[k]];
            e.p[1 + k].at += (int64_t)(fac_cl_at(x) / bytes_of(r->extra_dtype[k]));
            args[5 + k] = fac_cl_arg_span(x);
        }
        int n = 5 + r->extras;
        endings to;
        if (q->c.moments) args[n++] = fac_cl_arg_span(work);
        if (q->maps) args[n++] = fac_cl_arg_span(work);
        if (q->kept) {
            const fac_span var = q->c.sums ? in[FAC_NV_NORM_VAR] : out[2];
            to = (endings){ fac_cl_floats_at(out[1]), fac_cl_floats_at(out[2]),
                            fac_cl_floats_at(var), fac_cl_floats_at(made->done) };
            const fac_cl_arg more[] = { fac_cl_arg_value(&to, sizeof to), fac_cl_arg_span(out[1]),
                                        fac_cl_arg_span(out[2]), fac_cl_arg_span(var),
                                        fac_cl_arg_span(made->done) };
            for (size_t k = 0; k < sizeof more / sizeof *more; k++) args[n++] = more[k];
        }
        const size_t items = 128 * (size_t)(q->t.consumers + 1), units = o->limits.units,
                     groups = q->kept                   ? (size_t)c.groups
                              : (size_t)s.tiles < units ? (size_t)s.tiles
                                                        : units;
        const fac_cl_range range = { 1, { groups * items }, { items } };
        FAC_TRY(fac_cl_launch(o, &made->kernel, &range, n, args, err));
    }
    return q->c.moments && !q->kept
               ? fac_nv_moments_run(o, &q->c, &m, &made->moments, work, in, out, err)
               : FAC_OK;
}

const fac_solver fac_cl_conv_wgmma_stream = { .name = "conv/wgmma_stream",
                                              .rank = 470,
                                              .offer = offer,
                                              .make = make,
                                              .done = done,
                                              .pack_key = pack_key,
                                              .pack = pack,
                                              .run = run };
