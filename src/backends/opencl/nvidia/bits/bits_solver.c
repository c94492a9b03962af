/* conv2d_basis and conv2d_codes on matrix units: see bits.h.  Weights are packed once; where they
 * change in the run, as a step of it. */
#include "backends/draft.h"
#include "backends/opencl/nvidia/bits/bits.h"
#include "backends/gpu/nvidia/speed.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum { GROUP = 256, VERSION = 1, LAUNCHES = 2 };

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_nv_bits_unit *unit = p->solver->how;
    fac_opencl *o = fac_opencl_of(d);
    fac_nv_bits s;
    if (unit->path != FAC_CL_PATHS && !fac_cl_has_path(o, unit->path)) return false;
    if (!fac_nv_bits_choose(o, p, unit, &s)) return false;
    s.c.w_bytes = 0; /* of scratch: weights are packed */
    offer->work = s.c.x_bytes;
    offer->packed[FAC_CB_BITS] = s.packed;
    offer->seconds = fac_cl_price(o, p, s.c.x_codes ? 1 : 2) + fac_nv_bits_seconds(o, &s);
    if (p->in[FAC_CB_BITS].time == FAC_RUN)
        offer->seconds += fac_nv_speeds.pack_launch + 2 * (double)s.packed / fac_nv_speeds.pack;
    offer->variants = unit->ncuts;
    offer->version = VERSION;
    *FAC_DRAFT(offer, fac_nv_bits) = s;
    return true;
}

/* ---- the plan ---- */

typedef struct plan {
    fac_nv_bits s;
    void *product, *pack; /* fac_cl_plan */
} plan;

#define ADD_NUMBERS(c, ...)                                                                        \
    do {                                                                                           \
        const int64_t all_[] = { __VA_ARGS__ };                                                    \
        fac_cl_call_numbers(c, all_, sizeof all_ / sizeof *all_);                                  \
    } while (0)

void fac_nv_bits_numbers(const fac_nv_bits *s, fac_cl_call *c) {
    const fac_conv_geom *g = &s->c.g;
    const size_t tiles = (size_t)(s->row_tiles * s->group_tiles * g->groups);
    const size_t items = (size_t)fac_nv_bits_items(s);
    ADD_NUMBERS(c, s->pixels, g->N, s->c.K, g->groups, g->H, g->W, g->P, g->Q, g->S, g->R * g->S,
                g->stride[1], g->stride[2], g->dilation[1], g->dilation[2], g->pad[1], g->pad[2],
                s->c.words, s->k_tiles, s->group_tiles, g->R, (int64_t)s->inside);
    fac_cl_call_items(c, tiles * items, items);
}

static fac_status add_product(fac_opencl *o, const fac_problem *p, fac_cl_plan *to,
                              fac_error *err) {
    const fac_nv_bits *s = p->draft;
    fac_text text = { 0 };
    fac_cl_call *c = NULL;
    if (!s->c.x_codes) FAC_TRY(fac_cl_bits_pixels(o, p, &s->c, to, err));
    fac_nv_bits_text(p, s, &text);
    const fac_status status = fac_cl_call_text(o, to, &text, "", "product", &c, err);
    fac_text_free(&text);
    FAC_TRY(status);
    const int inputs = s->c.codes ? FAC_CC_PORTS : FAC_CB_PORTS;
    for (int i = 0; i < inputs; i++) fac_cl_call_in(c, p, i);
    fac_cl_call_work(c, 0, sizeof(uint32_t));
    for (int k = 0; k < (s->c.codes ? 2 : 1); k++) fac_cl_call_out(c, p, k);
    fac_nv_bits_numbers(s, c);
    return FAC_OK;
}

static fac_status add_pack(fac_opencl *o, const fac_problem *p, fac_cl_plan *to, const char *name,
                           int64_t units, fac_error *err) {
    const fac_nv_bits *s = p->draft;
    const fac_conv_geom *g = &s->c.g;
    fac_text text = { 0 };
    fac_cl_call *c = NULL;
    fac_nv_bits_pack_text(s, &text);
    const fac_status status = fac_cl_call_text(o, to, &text, "", name, &c, err);
    fac_text_free(&text);
    FAC_TRY(status);
    fac_cl_call_bytes(c, FAC_CB_BITS);
    fac_cl_call_work(c, 0, sizeof(uint32_t));
    ADD_NUMBERS(c, units, p->in[FAC_CB_BITS].type.dims.d[2], s->c.K, g->groups, s->c.C, g->R * g->S,
                g->R, g->S, s->c.words, s->k_tiles, s->group_tiles, (int64_t)s->inside);
    fac_cl_call_items(c, (size_t)units, GROUP);
    return FAC_OK;
}

static fac_status add_packs(fac_opencl *o, const fac_problem *p, fac_cl_plan *to, fac_error *err) {
    const fac_nv_bits *s = p->draft;
    const size_t word = sizeof(uint32_t);
    FAC_TRY(add_pack(o, p, to, "tiles", (int64_t)(s->inside / word), err));
    if (s->packed == s->inside) return FAC_OK;
    return add_pack(o, p, to, "inside", (int64_t)((s->packed - s->inside) / word), err);
}

static void done(fac_device *d, void *arg) {
    plan *q = arg;
    if (!q) return;
    fac_cl_plan_done(d, q->product);
    fac_cl_plan_done(d, q->pack);
    fac_release(q);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    q->s = *(const fac_nv_bits *)p->draft;
    fac_status status = fac_cl_plan_make(d, p, LAUNCHES, add_product, &q->product, err);
    if (!status) status = fac_cl_plan_make(d, p, LAUNCHES, add_packs, &q->pack, err);
    return fac_solver_made(status, d, q, done, out);
}

/* Of all that the tiles depend on, but the problem. */
static uint64_t pack_key(const void *arg, int input) {
    const fac_nv_bits *s = &((const plan *)arg)->s;
    const fac_conv_geom *g = &s->c.g;
    const int64_t of[] = { fac_nv_bits_columns(s),
                           s->c.of_weights,
                           s->c.sign,
                           s->c.C,
                           s->c.K,
                           g->groups,
                           g->R,
                           g->S,
                           s->c.words };
    fac_hash h = fac_hash_start((uint64_t)input);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) h = fac_hash_int(h, (uint64_t)of[i]);
    return h.a;
}

static fac_status pack(const void *arg, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *q = arg;
    fac_span in[FAC_CC_PORTS] = { { 0 } };
    in[input] = from;
    return fac_cl_plan_run(q->pack, d, in, NULL, to, err);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *q = arg;
    return fac_cl_plan_run(q->product, d, in, out, work, err);
}

#define SOLVER(of, way, by)                                                                        \
    .name = #of "/" #way, .op = &fac_op_##of, .how = &by, .offer = offer, .make = make,            \
    .done = done, .pack_key = pack_key, .pack = pack, .run = run

const fac_solver fac_cl_conv_basis_mma = { SOLVER(conv2d_basis, mma, fac_nv_bits_mma),
                                           .rank = 148 };
const fac_solver fac_cl_conv_codes_mma = { SOLVER(conv2d_codes, mma, fac_nv_bits_mma),
                                           .rank = 149 };
const fac_solver fac_cl_conv_basis_wgmma = { SOLVER(conv2d_basis, wgmma, fac_nv_bits_wgmma),
                                             .rank = 138 };
const fac_solver fac_cl_conv_codes_wgmma = { SOLVER(conv2d_codes, wgmma, fac_nv_bits_wgmma),
                                             .rank = 139 };
