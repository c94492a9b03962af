/* conv/winograd_2x2 and conv/winograd_4x4: 3 x 3 convolutions of stride 1, their gradients by x and
 * their transposes, with 2.25 and 4 times fewer multiplications (winograd.cl): filters are
 * transformed when they are packed, inputs are transformed, one product for each point (gemm.h),
 * results are transformed back and finished.
 *
 * What is saved in arithmetic is paid in memory: V and M are 4 (2x2) or 2.25 (4x4) times as large
 * as x and y, written and read. Images go through in slices, so that the scratch stays bounded. The
 * rule of accuracy is the cpu's: a program that wants exact results gets 2x2 alone, whose error is
 * no larger than that of the direct sum. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "opencl_solvers.h"
#include "backends/opencl/conv/winograd.h"
#include "backends/gpu/speed.h"
#include "base/clamp.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/table.h"
#include "tensor/tensor_internal.h"

enum { VERSION = 1 };

/* As the kernels have them. */
typedef struct filters {
    int64_t from, to, row, channel, group;
    int32_t M, padded, channels, groups;
} filters;
typedef struct results {
    int64_t from;
    int32_t height, width, down, across, first, tiles, row, channels;
} results;

typedef struct plan {
    fac_cl_conv c;
    fac_gpu_product r; /* one product for each point */
    fac_gpu_tile t;
    fac_cl_gemm g, last; /* last: sizes of elements for the last step */
    fac_cl_kernel filter, input, output;
    int out; /* rows and columns of a tile */
    int64_t images, down, across,
        row;     /* of a slice; tiles of an image; tiles of a slice with those that fill it up */
    size_t v, m; /* bytes */
    fac_cl_sight sight;
    bool fours;
} plan;

static int points(const plan *q) { return (q->out + 2) * (q->out + 2); }
static int64_t rows_of(const plan *q) { return q->c.M * q->c.g.groups; }
static int64_t channels_of(const plan *q) { return q->c.C * q->c.g.groups; }

/* The products of a slice of so many images. */
static fac_gpu_shape shape_of(const plan *q, int64_t images) {
    fac_gpu_shape s = q->r.s;
    s.N = s.inner_n = fac_cl_padded(images * q->down * q->across);
    return s;
}

/* Rows of U with those that fill it up, as the tile reads them. */
static int64_t padded_rows(const plan *q) {
    const int panel = q->t.way == FAC_GPU_VECTOR ? q->t.RM : 4;
    return (q->c.M + panel - 1) / panel * panel;
}

static void describe_product(plan *q) {
    const fac_cl_conv *c = &q->c;
    fac_gpu_product *r = &q->r;
    const int64_t padded = padded_rows(q), groups = c->g.groups;
    memset(r, 0, sizeof *r);
    r->panel = q->t.way == FAC_GPU_VECTOR ? q->t.RM : 0;
    r->dtype = r->result = FAC_F32;
    r->alpha = r->beta = 1;
    r->padded = true;
    r->s.M = c->M;
    r->s.K = c->C;
    r->s.splits = 1;
    r->s.z[0] = r->s.z[1] = 1;
    r->s.z[2] = points(q);
    r->s.z[3] = groups;
    r->s.batch = points(q) * groups;
    r->s.a = (fac_gpu_matrix){ .row = 1,
                               .column = padded,
                               .z = { 0, 0, groups * c->C * padded, c->C * padded } };
    r->s.b = (fac_gpu_matrix){ .row = q->row,
                               .column = 1,
                               .z = { 0, 0, channels_of(q) * q->row, c->C * q->row } };
    r->s.y = (fac_gpu_matrix){ .row = q->row,
                               .column = 1,
                               .z = { 0, 0, rows_of(q) * q->row, c->M * q->row } };
    r->s = shape_of(q, q->images);
}

static bool whole_fours(const fac_cl_conv *c) {
    const fac_gpu_matrix *y = &c->r.s.y;
    return c->g.rank == 2 && y->column == 1 && y->at % 4 == 0 && y->row % 4 == 0 &&
           y->outer % 4 == 0;
}

static bool settle(const fac_opencl *o, fac_problem *p, int out, plan *q) {
    fac_cl_conv *c = &q->c;
    const fac_conv_geom *g = &c->g;
    memset(q, 0, sizeof *q);
    if (!fac_cl_conv_read(o, p, true, c) || c->kind == FAC_GPU_GRAD_W ||
        !fac_cl_winograd_takes(p, c, out))
        return false;
    if (g->pad[1] > 2 || g->pad[2] > 2 || c->see[2] != 1) return false;
    const bool grad_x = c->kind == FAC_GPU_GRAD_X;
    const int64_t *from = grad_x ? g->out : g->in;
    const int64_t *to = grad_x ? g->in : g->out;
    q->out = out;
    q->down = (to[1] + out - 1) / out;
    q->across = (to[2] + out - 1) / out;
    const double image = (double)(q->down * q->across) * points(q) *
                         (double)(channels_of(q) + rows_of(q)) * sizeof(float);
    if (image > 1e9 || (double)g->N * (double)(q->down * q->across) > INT_MAX) return false;
    q->images = (int64_t)(fac_cl_winograd_slice(o, p->variant) / image);
    q->images = fac_clamp(q->images, 1, g->N);
    q->row = fac_cl_padded(q->images * q->down * q->across);
    if ((double)q->row * (double)channels_of(q) > INT_MAX ||
        (double)q->row * (double)rows_of(q) > INT_MAX)
        return false;
    q->v = (size_t)(points(q) * channels_of(q) * q->row) * sizeof(float);
    q->m = (size_t)(points(q) * rows_of(q) * q->row) * sizeof(float);
    q->fours = out == 4 && to[2] % 4 == 0 && whole_fours(c);
    q->sight = (fac_cl_sight){ .at = p->in[0].layout.offset,
                               .image = p->in[0].layout.stride[0],
                               .channel = c->see_channel,
                               .h = c->see[1],
                               .w = c->see[2],
                               .height = (int32_t)from[1],
                               .width = (int32_t)from[2],
                               .down = (int32_t)q->down,
                               .across = (int32_t)q->across,
                               .row = (int32_t)q->row,
                               .channels = (int32_t)channels_of(q) };
    q->sight.pad_h = (int32_t)(grad_x ? 2 - g->pad[1] : g->pad[1]);
    q->sight.pad_w = (int32_t)(grad_x ? 2 - g->pad[2] : g->pad[2]);
    describe_product(q);
    fac_gpu_tile other;
    const bool tiled = fac_gpu_tile_choose(&o->limits, &q->r, FAC_GPU_TILED, &q->t),
               vector = fac_gpu_tile_choose(&o->limits, &q->r, FAC_GPU_VECTOR, &other);
    if (vector && (!tiled || other.seconds < q->t.seconds)) q->t = other;
    describe_product(q);
    return tiled || vector;
}

static size_t filter_bytes(const plan *q) {
    return (size_t)(points(q) * q->c.g.groups * q->c.C * padded_rows(q)) * sizeof(float);
}

/* On the careful side: a transform that waits for memory hides nothing of the next step's. */
static double seconds(const fac_opencl *o, const plan *q, const fac_problem *p) {
    const double slices = (double)((q->c.g.N + q->images - 1) / q->images),
                 weights = (double)filter_bytes(q);
    double bytes =
        slices * (2 * (double)(q->v + q->m) + weights) + (double)fac_type_bytes(&p->in[0].type);
    for (int i = 0; i < q->c.r.extras; i++)
        bytes += (double)fac_type_bytes(&p->in[q->c.r.input[i]].type);
    bytes += (double)fac_type_bytes(&p->out[0].type);
    if (p->in[1].time == FAC_RUN) bytes += 2 * weights;
    return 1.4 * (slices * (fac_gpu_costs.winograd_slice + q->t.seconds) +
                  bytes / fac_gpu_bandwidth(&o->limits));
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const int out = *(const int *)p->solver->how;
    const fac_opencl *o = fac_opencl_of(d);
    plan q;
    if (!settle(o, p, out, &q)) return false;
    offer->seconds = seconds(o, &q, p);
    offer->variants = FAC_CL_WINOGRAD_VARIANTS;
    offer->version = VERSION;
    offer->work = q.v + q.m + fac_gpu_tile_work(&q.t, &q.r);
    offer->packed[1] = filter_bytes(&q);
    *FAC_DRAFT(offer, plan) = q;
    return true;
}

static void done(fac_device *d, void *arg) {
    fac_opencl *o = fac_opencl_of(d);
    plan *q = arg;
    if (!q) return;
    fac_cl_gemm_free(o, &q->g);
    fac_cl_gemm_free(o, &q->last);
    fac_cl_kernel_free(o, &q->filter);
    fac_cl_kernel_free(o, &q->input);
    fac_cl_kernel_free(o, &q->output);
    fac_release(q);
}

static fac_status build_kernel(fac_opencl *o, const plan *q, const char *part, const char *name,
                               fac_cl_kernel *to, fac_error *err) {
    char options[96], panel[32] = "";
    if (q->r.panel) snprintf(panel, sizeof panel, "#define PANEL %d\n", q->r.panel);
    snprintf(options, sizeof options, "#define %s\n%s%s%s", part,
             q->c.kind == FAC_GPU_GRAD_X ? "#define FLIPPED\n" : "",
             q->fours ? "#define FOURS\n" : "", panel);
    return fac_cl_winograd_kernel(o, &q->c.r, q->out, options, name, to, err);
}

static fac_status build(fac_opencl *o, const fac_problem *p, plan *q, fac_error *err) {
    *q = *(const plan *)p->draft;
    FAC_TRY(build_kernel(o, q, "FILTERS", "filter_tiles", &q->filter, err));
    FAC_TRY(build_kernel(o, q, "INPUTS", "input_tiles", &q->input, err));
    FAC_TRY(build_kernel(o, q, "RESULTS", "output_tiles", &q->output, err));
    FAC_TRY(fac_cl_gemm_make(o, &q->r, &q->t, &q->g, err));
    return fac_cl_sum_make(o, &q->c.r, false, &q->last, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **to, fac_error *err) {
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    fac_status status = build(fac_opencl_of(d), p, q, err);
    return fac_solver_made(status, d, q, done, to);
}

static uint64_t pack_key(const void *arg, int input) {
    const plan *q = arg;
    const fac_hash h = fac_hash_int(fac_hash_start((uint64_t)input),
                                    (uint64_t)q->c.kind << 32 | (uint64_t)q->c.g.groups);
    return fac_hash_int(h, (uint64_t)q->out << 8 | (uint64_t)q->r.panel).a;
}

static fac_status pack(const void *arg, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *q = arg;
    const fac_cl_conv *c = &q->c;
    const bool grad_x = c->kind == FAC_GPU_GRAD_X;
    fac_opencl *o = fac_opencl_of(d);
    filters f = { .from = fac_cl_floats_at(from),
                  .to = fac_cl_floats_at(to),
                  .row = grad_x ? 9 : 9 * c->C,
                  .channel = grad_x ? 9 * c->M : 9,
                  .group = 9 * c->M * c->C,
                  .M = (int32_t)c->M,
                  .padded = (int32_t)padded_rows(q),
                  .channels = (int32_t)c->C,
                  .groups = (int32_t)c->g.groups };
    const fac_cl_range range = fac_cl_winograd_range(o, (int64_t)f.padded * c->C, c->g.groups);
    const fac_cl_arg args[] = { fac_cl_arg_value(&f, sizeof f), fac_cl_arg_span(from),
                                fac_cl_arg_span(to) };
    (void)input;
    return fac_cl_launch(o, &q->filter, &range, 3, args, err);
}

static fac_status run_slice(const plan *q, fac_opencl *o, int64_t first, int64_t images,
                            const fac_span *in, fac_span out, fac_span work, fac_error *err) {
    const fac_conv_geom *g = &q->c.g;
    const int64_t tiles = images * q->down * q->across,
                  *to = q->c.kind == FAC_GPU_GRAD_X ? g->in : g->out;
    const fac_span V = work, M = { work.memory, work.at + q->v },
                   parts = { work.memory, work.at + q->v + q->m };
    const fac_gpu_shape s = shape_of(q, images);
    fac_cl_sight look = q->sight;
    look.at += fac_cl_floats_at(in[0]);
    look.to = fac_cl_floats_at(V);
    look.first = (int32_t)(first * q->down * q->across);
    look.tiles = (int32_t)tiles;
    const fac_cl_range fill = fac_cl_winograd_range(o, s.N, channels_of(q)),
                       finish = fac_cl_winograd_range(o, tiles, rows_of(q));
    const fac_cl_arg seen[] = { fac_cl_arg_value(&look, sizeof look), fac_cl_arg_span(in[0]),
                                fac_cl_arg_span(V) };
    FAC_TRY(fac_cl_launch(o, &q->input, &fill, 3, seen, err));
    FAC_TRY(fac_cl_gemm_run(o, &q->g, &s,
                            &(fac_cl_operands){ .a = in[1], .b = V, .y = M, .work = parts }, err));
    fac_cl_operands x = { .y = out };
    for (int i = 0; i < q->c.r.extras; i++) x.e[i] = in[q->c.r.input[i]];
    const fac_gpu_shape whole = fac_cl_placed(&q->last, &q->c.r.s, &x);
    const results r = { .from = fac_cl_floats_at(M),
                        .height = (int32_t)to[1],
                        .width = (int32_t)to[2],
                        .down = look.down,
                        .across = look.across,
                        .first = (int32_t)first,
                        .tiles = look.tiles,
                        .row = look.row,
                        .channels = (int32_t)rows_of(q) };
    fac_cl_arg args[4 + FAC_GPU_EXTRAS] = { fac_cl_shape_arg(&q->last, &whole),
                                            fac_cl_arg_value(&r, sizeof r), fac_cl_arg_span(M),
                                            fac_cl_arg_span(out) };
    for (int i = 0; i < q->c.r.extras; i++) args[4 + i] = fac_cl_arg_span(x.e[i]);
    return fac_cl_launch(o, &q->output, &finish, 4 + q->c.r.extras, args, err);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *q = arg;
    const int64_t all = q->c.g.N;
    for (int64_t first = 0; first < all; first += q->images) {
        const int64_t images = all - first < q->images ? all - first : q->images;
        FAC_TRY(run_slice(q, fac_opencl_of(d), first, images, in, out[0], work, err));
    }
    return FAC_OK;
}

const fac_solver fac_cl_winograd_2x2 = { .name = "conv/winograd_2x2",
                                         .rank = 530,
                                         .how = &(const int){ 2 },
                                         .offer = offer,
                                         .make = make,
                                         .done = done,
                                         .pack_key = pack_key,
                                         .pack = pack,
                                         .run = run };
const fac_solver fac_cl_winograd_4x4 = { .name = "conv/winograd_4x4",
                                         .rank = 540,
                                         .how = &(const int){ 4 },
                                         .offer = offer,
                                         .make = make,
                                         .done = done,
                                         .pack_key = pack_key,
                                         .pack = pack,
                                         .run = run };
