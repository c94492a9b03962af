/* Convolutions read as products, and their tables: see conv.h. */
#include <string.h>
#include "backends/opencl/conv/conv.h"
#include "base/error.h"
#include "base/memory.h"
#include "ops/conv_grad.h"
#include "ops/conv_transpose.h"
#include "op_list.h"

enum { PHASES = 64 };

static bool is_transposed(const fac_op *op) {
    return op == &fac_op_conv_transpose2d || op == &fac_op_conv_transpose3d;
}

static bool kind_of(const fac_op *op, fac_gpu_conv_kind *kind) {
    if (op == &fac_op_conv2d || op == &fac_op_conv3d)
        *kind = FAC_GPU_FORWARD;
    else if (op == &fac_op_conv2d_grad_x || op == &fac_op_conv3d_grad_x || is_transposed(op))
        *kind = FAC_GPU_GRAD_X;
    else if (op == &fac_op_conv2d_grad_w || op == &fac_op_conv3d_grad_w)
        *kind = FAC_GPU_GRAD_W;
    else
        return false;
    return true;
}

bool fac_cl_conv_node(const fac_node *n, fac_gpu_conv_kind *kind, fac_conv_geom *g, int *bias) {
    if (!kind_of(n->op, kind)) return false;
    *bias = *kind == FAC_GPU_FORWARD || is_transposed(n->op) ? 2 : -1;
    return fac_conv_geometry(n, g) || fac_conv_grad_geometry(n, g) ||
           fac_conv_transpose_geometry(n, g);
}

/* Steps of the spatial dims as those of depth, height and width. */
static void spatial(const int64_t *stride, int rank, int64_t *to) {
    for (int k = 0; k < 3; k++) to[k] = k < 3 - rank ? 0 : stride[k - (3 - rank)];
}

/* The one step of dims that are stepped over evenly; false when they are not. */
static bool even(const int64_t *size, const int64_t *step, int n, int64_t *each) {
    int64_t count = 1;
    *each = 0;
    for (int k = n - 1; k >= 0; k--) {
        if (size[k] == 1) continue;
        if (count == 1)
            *each = step[k];
        else if (step[k] != *each * count)
            return false;
        count *= size[k];
    }
    if (count == 1) *each = 1;
    return true;
}

static void lay_plain(fac_operand *x) { x->layout = fac_layout_plain(&x->type.dims); }

/* The operand as images of channels; plain where it is blocked, or where `merged` steps are asked
 * for and are not there. */
static void as_image(fac_operand *x, int rank, bool merged, int64_t *step, int64_t *each) {
    int64_t size[3] = { 1, 1, 1 };
    for (int turn = 0; turn < 2; turn++) {
        if (turn || x->layout.block) lay_plain(x);
        spatial(x->layout.stride + 2, rank, step);
        for (int k = 3 - rank; k < 3; k++) size[k] = x->type.dims.d[2 + k - (3 - rank)];
        if (even(size, step, 3, each) || !merged) return;
    }
}

fac_cl_phase fac_cl_phase_of(const fac_cl_conv *c, int phase) {
    const fac_conv_geom *g = &c->g;
    fac_cl_phase f = { { 0 }, { 1, 1, 1 }, { 0 } };
    int64_t far;
    for (int d = 2, rest = phase; d >= 0; d--) {
        const int64_t each = c->kind == FAC_GPU_GRAD_X ? g->stride[d] : 1;
        f.at[d] = rest % each;
        rest /= (int)each;
        f.pixels[d] = c->kind != FAC_GPU_GRAD_X ? g->out[d]
                      : g->in[d] > f.at[d]      ? (g->in[d] - f.at[d] + each - 1) / each
                                                : 0;
        for (int64_t k = 0; k < g->kernel[d]; k++)
            f.taps[d] += fac_cl_phase_sees(c, &f, d, k, &far);
    }
    return f;
}

bool fac_cl_phase_sees(const fac_cl_conv *c, const fac_cl_phase *f, int d, int64_t k,
                       int64_t *far) {
    const fac_conv_geom *g = &c->g;
    *far = k * g->dilation[d];
    if (c->kind != FAC_GPU_GRAD_X) return true;
    const int64_t from = f->at[d] + g->pad[d] - k * g->dilation[d];
    *far = from / g->stride[d];
    return from % g->stride[d] == 0;
}

/* Channels with those that fill the last block. */
static int64_t channels(const fac_cl_conv *c) {
    return c->block ? (c->C + c->block - 1) / c->block * c->block : c->C;
}

static void sizes(const fac_cl_conv *c, const fac_cl_phase *f, fac_gpu_shape *s) {
    s->inner_n = fac_cl_phase_pixels(f);
    s->N = c->g.N * s->inner_n;
    s->channels = c->C;
    s->window = fac_cl_phase_taps(f);
    s->K = channels(c) * s->window;
    s->a.z[FAC_GPU_BATCH - 1] = s->a.column * s->K;
}

void fac_cl_conv_block(fac_cl_conv *c, int64_t block) {
    int64_t most = -1;
    c->block = block;
    for (int i = 0; i < c->phases && c->kind != FAC_GPU_GRAD_W; i++) {
        const fac_cl_phase f = fac_cl_phase_of(c, i);
        const int64_t work = fac_cl_phase_pixels(&f) * (1 + fac_cl_phase_taps(&f));
        if (work > most) most = work, sizes(c, &f, &c->r.s);
    }
}

void fac_cl_conv_settle(fac_cl_conv *c, const fac_gpu_tile *t) {
    if (c->kind == FAC_GPU_GRAD_W) return;
    if (t->way == FAC_GPU_VECTOR) {
        c->r.panel = t->RM;
        c->r.s.a.column = (c->M + t->RM - 1) / t->RM * t->RM;
    }
    fac_cl_conv_block(c, t->blocks ? t->TK : 0);
}

fac_gpu_shape fac_cl_phase_shape(const fac_cl_conv *c, int phase) {
    fac_gpu_shape s = c->r.s;
    if (c->kind == FAC_GPU_GRAD_W) return s;
    for (int i = 0; i <= phase; i++) {
        const fac_cl_phase f = fac_cl_phase_of(c, i);
        sizes(c, &f, &s);
        if (i == phase) break;
        s.a.at += s.batch * s.a.z[FAC_GPU_BATCH - 1];
        s.taps += c->block ? s.window : s.K;
        s.pixels += s.inner_n;
        s.places += s.inner_n;
    }
    return s;
}

size_t fac_cl_conv_packed(const fac_cl_conv *c) {
    const fac_gpu_shape last = fac_cl_phase_shape(c, c->phases - 1);
    return (size_t)(last.a.at + last.batch * last.a.z[FAC_GPU_BATCH - 1]);
}

/* y and what is added to it: the rows of one group, images x pixels. */
static bool result(const fac_problem *p, const fac_operand *x, bool places, const int64_t *out,
                   int64_t M, fac_gpu_matrix *m) {
    const fac_dims *d = &p->out[0].type.dims;
    const int rank = d->n - 2;
    int64_t step[FAC_DIMS], *s = step + 2;
    if (!fac_gpu_strides(x, d, step)) return false;
    *m = (fac_gpu_matrix){ .at = x->layout.offset, .row = step[1], .outer = step[0] };
    m->z[FAC_GPU_BATCH - 1] = M * step[1];
    if (!places) {
        bool none = true;
        for (int k = 0; k < rank; k++) none &= s[k] == 0;
        return none || even(d->d + 2, s, rank, &m->column);
    }
    bool same = true, still = true;
    for (int k = 0; k < rank; k++) {
        same &= s[k] == out[3 - rank + k] || d->d[2 + k] == 1;
        still &= s[k] == 0;
    }
    m->column = !still;
    return same || still;
}

/* Each pixel of y sees one of x alone, in the same place: x is a matrix. */
static bool is_alone(const fac_conv_geom *g) {
    bool alone = true;
    for (int d = 0; d < 3; d++)
        alone &= g->kernel[d] == 1 && g->stride[d] == 1 && g->pad[d] == 0 && g->in[d] == g->out[d];
    return alone;
}

/* Forward and grad_x: a = packed weights, b = patches or, where each pixel sees itself alone, the
 * image as a matrix. */
static bool read_patches(fac_problem *p, bool phases, fac_cl_conv *c) {
    const fac_conv_geom *g = &c->g;
    fac_gpu_product *r = &c->r;
    fac_gpu_shape *s = &r->s;
    const bool grad_x = c->kind == FAC_GPU_GRAD_X, alone = is_alone(g);
    int64_t each = 0, across = 0;
    bool strided = false;
    c->M = (grad_x ? g->C : g->K) / g->groups;
    c->C = (grad_x ? g->K : g->C) / g->groups;
    for (int d = 0; d < 3; d++) strided |= g->stride[d] != 1;
    as_image(&p->in[0], g->rank, alone, c->see, &each);
    r->places = grad_x && strided && phases;
    as_image(&p->out[0], g->rank, !r->places, c->out, &across);
    c->see_channel = p->in[0].layout.stride[1];
    c->phases = grad_x && phases ? (int)(g->stride[0] * g->stride[1] * g->stride[2]) : 1;

    s->M = c->M;
    s->batch = s->z[FAC_GPU_BATCH - 1] = g->groups;
    s->a = (fac_gpu_matrix){ .row = 1, .column = fac_cl_padded(s->M) };
    r->padded = true;
    fac_cl_conv_block(c, 0);
    s->b = (fac_gpu_matrix){ .at = p->in[0].layout.offset, .outer = p->in[0].layout.stride[0] };
    s->b.z[FAC_GPU_BATCH - 1] = c->C * c->see_channel;
    s->b.row = c->see_channel;
    s->b.column = each;
    if (!alone) r->right = FAC_GPU_PATCHES;
    for (int d = 0; d < 3; d++) s->in[d] = grad_x ? g->out[d] : g->in[d];
    if (!result(p, &p->out[0], r->places, c->out, c->M, &s->y)) return false;
    for (int i = r->biased; i < r->extras; i++) {
        fac_operand *extra = &p->in[r->input[i]];
        if (result(p, extra, r->places, c->out, c->M, &s->e[i])) continue;
        lay_plain(extra);
        if (!result(p, extra, r->places, c->out, c->M, &s->e[i])) return false;
    }
    if (r->biased) {
        s->e[0] =
            (fac_gpu_matrix){ .at = p->in[2].layout.offset, .row = p->in[2].layout.stride[0] };
        s->e[0].z[FAC_GPU_BATCH - 1] = c->M * s->e[0].row;
    }
    return true;
}

/* grad_w: a = dy, whose columns are images x pixels; b = patches of x, transposed, or the image as
 * a matrix, too. */
static bool read_taps(fac_problem *p, fac_cl_conv *c) {
    const fac_conv_geom *g = &c->g;
    fac_gpu_shape *s = &c->r.s;
    fac_operand *x = &p->in[0], *dy = &p->in[1], *dw = &p->out[0];
    const int64_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2];
    const bool alone = is_alone(g);
    int64_t each, steps[3], across;
    c->M = g->K / g->groups;
    c->C = g->C / g->groups;
    c->phases = 1;
    as_image(x, g->rank, alone, c->see, &each);
    as_image(dy, g->rank, true, steps, &across);
    c->see_channel = x->layout.stride[1];
    s->inner_k = g->out[0] * g->out[1] * g->out[2];
    s->M = c->M;
    s->N = s->inner_n = c->C * taps;
    s->K = g->N * s->inner_k;
    s->images = g->N;
    c->r.split_k = true;
    if (!alone) c->r.right = FAC_GPU_TAPS;
    s->batch = s->z[FAC_GPU_BATCH - 1] = g->groups;
    s->a = (fac_gpu_matrix){ .at = dy->layout.offset,
                             .row = dy->layout.stride[1],
                             .column = across,
                             .outer = dy->layout.stride[0] };
    s->a.z[FAC_GPU_BATCH - 1] = c->M * s->a.row;
    s->b = (fac_gpu_matrix){ .at = x->layout.offset, .outer = x->layout.stride[0] };
    s->b.z[FAC_GPU_BATCH - 1] = c->C * c->see_channel;
    if (alone) {
        s->b.row = each;
        s->b.column = c->see_channel;
    }
    for (int d = 0; d < 3; d++) s->in[d] = g->in[d];
    for (int turn = 0; turn < 2; turn++) {
        if (turn || dw->layout.block) lay_plain(dw);
        if (even(dw->type.dims.d + 1, dw->layout.stride + 1, dw->type.dims.n - 1, &s->y.column))
            break;
    }
    s->y.at = dw->layout.offset;
    s->y.row = dw->layout.stride[0];
    s->y.z[FAC_GPU_BATCH - 1] = c->M * s->y.row;
    return c->r.extras == 0 && !c->r.body;
}

/* Tables hold offsets within one image as 32 bits. */
static bool small_image(const fac_operand *x) {
    double reach = 0;
    for (int k = 1; k < x->type.dims.n; k++)
        reach += (double)x->type.dims.d[k] * (double)llabs(x->layout.stride[k]);
    return reach < 1e9;
}

bool fac_cl_conv_read(const fac_opencl *o, fac_problem *p, bool phases, fac_cl_conv *c) {
    const fac_conv_geom *g = &c->g;
    int bias;
    memset(c, 0, sizeof *c);
    if (!fac_cl_conv_node(p->node, &c->kind, &c->g, &bias) ||
        !fac_cl_product_start(o, p, bias, &c->r))
        return false;
    c->r.deep = g->rank == 3;
    if (phases && c->kind == FAC_GPU_GRAD_X &&
        (double)g->stride[0] * (double)g->stride[1] * (double)g->stride[2] > PHASES)
        return false;
    if (!(c->kind == FAC_GPU_GRAD_W ? read_taps(p, c) : read_patches(p, phases, c))) return false;
    return small_image(&p->in[0]) && small_image(&p->out[0]) &&
           (double)c->r.s.K * (double)(c->M + 16) < 1e9;
}

/* ---- tables ---- */

static void put_tap(const fac_cl_conv *c, fac_cl_tables *t, int64_t channel, const int64_t *far) {
    int64_t offset = channel * c->see_channel;
    int32_t *to = t->tap + 4 * t->taps++;
    for (int d = 0; d < 3; d++) {
        offset += far[d] * c->see[d];
        to[1 + d] = (int32_t)far[d];
    }
    to[0] = (int32_t)offset;
}

/* Offset of a term's weight from that of the first; -1: one that only fills a block. */
static void put_term(const fac_cl_conv *c, fac_cl_tables *t, int64_t channel, int64_t tap) {
    const fac_conv_geom *g = &c->g;
    const int64_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2], row = g->C / g->groups * taps;
    if (!t->term) return;
    t->term[t->terms++] = (int32_t)(channel >= c->C             ? -1
                                    : c->kind == FAC_GPU_GRAD_X ? channel * row + tap
                                                                : channel * taps + tap);
}

static void fill_taps(const fac_cl_conv *c, const fac_cl_phase *f, fac_cl_tables *t) {
    const fac_conv_geom *g = &c->g;
    const int64_t each = g->kernel[0] * g->kernel[1] * g->kernel[2],
                  block = c->block ? c->block : 1;
    int64_t far[3];
    for (int64_t first = 0; first < c->C; first += block)
        for (int64_t tap = 0; tap < each; tap++) {
            const int64_t k = tap % g->S, j = tap / g->S % g->R, i = tap / g->S / g->R;
            if (!fac_cl_phase_sees(c, f, 0, i, &far[0]) ||
                !fac_cl_phase_sees(c, f, 1, j, &far[1]) || !fac_cl_phase_sees(c, f, 2, k, &far[2]))
                continue;
            for (int64_t channel = first; channel < first + block; channel++)
                put_term(c, t, channel, tap);
            if (!c->block || !first) put_tap(c, t, first, far);
        }
}

static void fill_pixels(const fac_cl_conv *c, const fac_cl_phase *f, fac_cl_tables *t) {
    const fac_conv_geom *g = &c->g;
    const bool grad_x = c->kind == FAC_GPU_GRAD_X;
    const int64_t count = fac_cl_phase_pixels(f);
    for (int64_t n = 0; n < count; n++) {
        const int64_t at[3] = { n / f->pixels[2] / f->pixels[1], n / f->pixels[2] % f->pixels[1],
                                n % f->pixels[2] };
        int64_t offset = 0, place = 0;
        int32_t *to = t->pixel + 4 * t->pixels++;
        for (int d = 0; d < 3; d++) {
            const int64_t from = grad_x ? at[d] : at[d] * g->stride[d] - g->pad[d];
            offset += from * c->see[d];
            to[1 + d] = (int32_t)from;
            place += (grad_x ? at[d] * g->stride[d] + f->at[d] : at[d]) * c->out[d];
        }
        to[0] = (int32_t)offset;
        if (t->place) t->place[t->places++] = (int32_t)place;
    }
}

fac_status fac_cl_tables_make(const fac_cl_conv *c, fac_cl_tables *t, fac_error *err) {
    size_t taps = 0, pixels = 0;
    memset(t, 0, sizeof *t);
    for (int i = 0; i < c->phases; i++) {
        const fac_cl_phase f = fac_cl_phase_of(c, i);
        taps += (size_t)(channels(c) * fac_cl_phase_taps(&f));
        pixels += (size_t)fac_cl_phase_pixels(&f);
    }
    t->tap = fac_alloc(4 * taps + 1, sizeof *t->tap);
    t->pixel = fac_alloc(4 * pixels + 1, sizeof *t->pixel);
    if (c->r.places) t->place = fac_alloc(pixels + 1, sizeof *t->place);
    const bool terms = c->kind == FAC_GPU_GRAD_X || c->block;
    if (terms) t->term = fac_alloc(taps + 1, sizeof *t->term);
    if (!t->tap || !t->pixel || (c->r.places && !t->place) || (terms && !t->term)) {
        fac_cl_tables_free(t);
        return fac_raise_memory(err, "the tables of a convolution");
    }
    for (int i = 0; i < c->phases; i++) {
        const fac_cl_phase f = fac_cl_phase_of(c, i);
        fill_taps(c, &f, t);
        fill_pixels(c, &f, t);
    }
    return FAC_OK;
}

void fac_cl_tables_free(fac_cl_tables *t) {
    fac_release(t->tap), fac_release(t->pixel), fac_release(t->place), fac_release(t->term);
    memset(t, 0, sizeof *t);
}
