/* The text of what is done to four sums: see epilogue.h. */
#include <string.h>
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/nvidia/unit/epilogue.h"
#include "base/optional.h"
#include "cl_nv_epilogue.h"

static bool is_half(fac_dtype t) { return t == FAC_F16 || t == FAC_BF16; }
static const char *name_of(fac_dtype t) {
    if (t == FAC_F16) return "f16";
    return t == FAC_BF16 ? "bf16" : "f32";
}
static bool is_known(fac_dtype t) { return t == FAC_F32 || is_half(t); }

/* ---- where operands lie ---- */

static double reach_of(const fac_nv_place *p, const int64_t *size) {
    const int32_t step[] = { p->image, p->channel, p->depth, p->row, p->column };
    double reach = 0;
    for (int k = 0; k < 5; k++)
        reach += (double)(size[k] - 1) * (double)(step[k] < 0 ? -step[k] : step[k]);
    return reach;
}

bool fac_nv_place_of(const fac_operand *x, const fac_dims *result, fac_nv_place *to) {
    int64_t step[FAC_DIMS], size[5] = { 1, 1, 1, 1, 1 };
    const int rank = result->n - 2;
    memset(to, 0, sizeof *to);
    if (rank < 1 || rank > 3 || !fac_cl_strides(x, result, step)) return false;
    for (int k = 0; k < result->n; k++) {
        if (result->d[k] == 1) step[k] = 0;
        if (step[k] > INT32_MAX || step[k] < -INT32_MAX) return false;
    }
    int32_t *const spatial[] = { &to->depth, &to->row, &to->column };
    to->at = x->layout.offset;
    to->image = (int32_t)step[0];
    to->channel = (int32_t)step[1];
    size[0] = result->d[0];
    size[1] = result->d[1];
    for (int k = 0; k < rank; k++) {
        *spatial[3 - rank + k] = (int32_t)step[2 + k];
        size[5 - rank + k] = result->d[2 + k];
    }
    return reach_of(to, size) < INT32_MAX;
}

bool fac_nv_in_fours(const fac_nv_place *p) {
    return p->channel == 1 && !((p->at | p->image | p->depth | p->row | p->column) & 3);
}

static bool is_thin(const fac_nv_place *p) { return p->apart > 1; }
static bool is_still(const fac_nv_place *p) {
    return !(p->image | p->depth | p->row | p->column) && !is_thin(p);
}

fac_nv_run fac_nv_run_of(const fac_nv_place *p) {
    if (p->channel == 0) return FAC_NV_PIXELS;
    if (!fac_nv_in_fours(p)) return FAC_NV_ANYHOW;
    return is_still(p) ? FAC_NV_CHANNELS : FAC_NV_FOURS;
}

void fac_nv_lay_last(fac_operand *x) {
    const fac_dims *d = &x->type.dims;
    x->layout = fac_layout_plain(d);
    if (d->n < 3) return;
    int64_t step = d->d[1];
    x->layout.stride[1] = 1;
    for (int k = d->n - 1; k >= 2; k--) {
        x->layout.stride[k] = step;
        step *= d->d[k];
    }
    x->layout.stride[0] = step;
}

static bool same_size(const fac_dims *a, const fac_dims *b) {
    return a->n == b->n && !memcmp(a->d, b->d, (size_t)a->n * sizeof *a->d);
}

/* A byte for the channels of each four of a pixel, one after the other. */
static bool place_bits(fac_operand *x, fac_nv_place *at) {
    const fac_dims *d = &x->type.dims;
    for (int turn = 0; turn < 2; turn++) {
        if (turn) fac_nv_lay_last(x);
        if (fac_nv_place_of(x, d, at) && (at->channel == 1 || d->d[1] == 1)) return true;
    }
    return false;
}

bool fac_nv_ends_read(fac_problem *p, const fac_cl_product *r, const fac_nv_unlike *unlike,
                      fac_nv_ends *e) {
    fac_operand *y = &p->out[0];
    const fac_dims *d = &y->type.dims;
    memset(e, 0, sizeof *e);
    if (!is_known(r->result)) return false;
    if (!fac_nv_place_of(y, d, &e->p[0]) || !fac_nv_in_fours(&e->p[0])) {
        fac_nv_lay_last(y);
        if (!fac_nv_place_of(y, d, &e->p[0]) || !fac_nv_in_fours(&e->p[0])) return false;
    }
    for (int i = 0; i < r->extras; i++) {
        fac_operand *x = &p->in[r->input[i]];
        fac_nv_place *at = &e->p[1 + i];
        if (i == unlike->bits) {
            if (x->type.dtype != FAC_U8 || !place_bits(x, at)) return false;
            continue;
        }
        if (!is_known(x->type.dtype)) return false;
        if ((r->biased && i == 0) || (!r->body && x->type.dims.n == 1)) { /* one number a channel */
            if (x->layout.block || x->layout.stride[0] > INT32_MAX / (d->d[1] + 1)) return false;
            *at = (fac_nv_place){ .at = x->layout.offset, .channel = (int32_t)x->layout.stride[0] };
            continue;
        }
        const fac_dims *own = i == unlike->thin && unlike->apart > 1
                                  ? &x->type.dims
                                  : d; /* its own pixels are counted */
        const bool placed = fac_nv_place_of(x, own, at);
        const bool good = placed && fac_nv_run_of(at) != FAC_NV_ANYHOW;
        if (!good && same_size(&x->type.dims, own))
            fac_nv_lay_last(x);
        else if (!placed)
            x->layout = fac_layout_plain(&x->type.dims);
        if (!good && !fac_nv_place_of(x, own, at)) return false;
        if (own != d) at->apart = unlike->apart;
    }
    return true;
}

/* ---- text ---- */

static bool moves_alike(const fac_nv_place *a, const fac_nv_place *b) {
    return !is_thin(a) && a->image == b->image && a->depth == b->depth && a->row == b->row &&
           a->column == b->column;
}

static bool is_bits(fac_dtype t) { return t == FAC_U8; }

/* Four elements of y for each byte. */
static bool moves_by_bits(const fac_nv_place *a, const fac_nv_place *y) {
    return 4 * a->image == y->image && 4 * a->depth == y->depth && 4 * a->row == y->row &&
           4 * a->column == y->column;
}

static void add_declarations(const fac_cl_product *r, const fac_nv_ends *e, fac_text *to) {
    fac_text_print(to, "#define RESULT %s\n#define EXTRAS %d\n#define EXTRA_PARAMS",
                   fac_cl_in_memory(r->result), r->extras);
    for (int i = 0; i < r->extras; i++)
        fac_text_print(to, " , global const %s *e%d", fac_cl_in_memory(r->extra_dtype[i]), i);
    fac_text_add(to, "\n#define EXTRA_ARGS");
    for (int i = 0; i < r->extras; i++) fac_text_print(to, " , e%d", i);
    int moving = 0;
    for (int i = 0; i < r->extras; i++) moving += !is_still(&e->p[1 + i]);
    fac_text_print(to,
                   "\n#define MOVING %d\ntypedef struct { long at; int image, depth, row, column, "
                   "channel, apart; } place;\n"
                   "typedef struct { place p[%d]; } ends;\ntypedef struct { int at[%d]; } spot;\n"
                   "typedef struct { float v[%d][4]; } more;\n",
                   moving, 1 + r->extras, 1 + r->extras, r->extras ? r->extras : 1);
    fac_text_add(
        to,
        "INLINE int place_of(const place *p, int image, int depth, int row, int column) {\n"
        "    return image * p->image + depth * p->depth + row * p->row + column * p->column;\n}\n"
        "INLINE spot spot_of(const ends *e, int image, int depth, int row, int column) {\n    spot "
        "s;\n"
        "    s.at[0] = place_of(&e->p[0], image, depth, row, column);\n");
    for (int i = 0; i < r->extras; i++) {
        if (is_still(&e->p[1 + i]))
            fac_text_print(to, "    s.at[%d] = 0;\n", 1 + i);
        else if (moves_alike(&e->p[1 + i], &e->p[0]))
            fac_text_print(to, "    s.at[%d] = s.at[0];\n", 1 + i);
        else if (is_bits(r->extra_dtype[i]) && moves_by_bits(&e->p[1 + i], &e->p[0]))
            fac_text_print(to, "    s.at[%d] = s.at[0] >> 2;\n", 1 + i);
        else if (is_thin(&e->p[1 + i]))
            fac_text_print(to,
                           "    s.at[%d] = (uint)row %% %du | (uint)column %% %du ? -1 : "
                           "place_of(&e->p[%d], image, depth, "
                           "(int)((uint)row / %du), (int)((uint)column / %du));\n",
                           1 + i, e->p[1 + i].apart, e->p[1 + i].apart, 1 + i, e->p[1 + i].apart,
                           e->p[1 + i].apart);
        else
            fac_text_print(to, "    s.at[%d] = place_of(&e->p[%d], image, depth, row, column);\n",
                           1 + i, 1 + i);
    }
    fac_text_add(to, "    return s;\n}\n");
}

/* still: of those that are the same for all pixels. */
static void add_loads(const fac_cl_product *r, const fac_nv_ends *e, bool still, fac_text *to) {
    fac_text_print(to, "INLINE void %s(const ends *e%s, int c, more *m EXTRA_PARAMS) {\n",
                   still ? "more_of_channels" : "more_of_pixel",
                   fac_text_if(!still, ", const spot *s"));
    for (int i = 0; i < r->extras; i++) {
        const char *name = name_of(r->extra_dtype[i]);
        const fac_nv_place *p = &e->p[1 + i];
        const fac_nv_run run = fac_nv_run_of(p);
        if (is_still(p) != still) continue;
        if (is_bits(r->extra_dtype[i])) {
            fac_text_print(to, "    m->v[%d][0] = as_float((uint)e%d[e->p[%d].at + (c >> 2)", i, i,
                           1 + i);
            if (!still) fac_text_print(to, " + s->at[%d]", 1 + i);
            fac_text_add(to, "]);\n");
            continue;
        }
        if (is_thin(p))
            fac_text_print(to,
                           "    UNROLL for (int k = 0; k < 4; k++) m->v[%d][k] = 0;\n    if "
                           "(s->at[%d] >= 0)\n",
                           i, 1 + i);
        fac_text_print(to, "    {\n        global const %s *x = e%d + e->p[%d].at",
                       fac_cl_in_memory(r->extra_dtype[i]), i, 1 + i);
        if (!still) fac_text_print(to, " + s->at[%d]", 1 + i);
        if (run == FAC_NV_CHANNELS || run == FAC_NV_FOURS)
            fac_text_print(to, " + c;\n        nv_four_%s(m->v[%d], x);\n", name, i);
        else if (run == FAC_NV_PIXELS)
            fac_text_print(to,
                           ";\n        m->v[%d][0] = m->v[%d][1] = m->v[%d][2] = m->v[%d][3] = "
                           "nv_one_%s(x);\n",
                           i, i, i, i, name);
        else
            fac_text_print(to,
                           " + c * e->p[%d].channel;\n        UNROLL for (int k = 0; k < 4; k++) "
                           "m->v[%d][k] = nv_one_%s(x + k * e->p[%d].channel);\n",
                           1 + i, i, name, 1 + i);
        fac_text_add(to, "    }\n");
    }
    fac_text_add(to, "}\n");
}

/* alpha x + beta bias as an element of the type that y has before the body, then the body. */
static bool add_finish(const fac_cl_product *r, bool fp64, fac_text *to) {
    fac_text functions = { 0 }, body = { 0 };
    char names[FAC_CL_EXTRAS][8];
    const char *in[FAC_CL_EXTRAS + 1] = { "whole" };
    bool good = true;
    for (int i = r->biased, n = 1; i < r->extras; i++, n++) {
        snprintf(names[i], sizeof names[i], "x%d", i);
        in[n] = names[i];
    }
    if (r->body)
        good = fac_cl_body_text(r->body, in, fp64, &functions, &body);
    else
        fac_text_add(&body, "        const float result = whole;\n");
    fac_text_add(to, functions.s ? functions.s : "");
    fac_text_add(to, "INLINE float finish(float x");
    for (int i = 0; i < r->extras; i++) fac_text_print(to, ", float x%d", i);
    fac_text_add(to, ") {\n");
    if (r->alpha != 1) fac_text_print(to, "    x *= (float)%.17g;\n", r->alpha);
    if (r->biased && r->beta != 1)
        fac_text_print(to, "    x += x0 * (float)%.17g;\n", r->beta);
    else if (r->biased)
        fac_text_add(to, "    x += x0;\n");
    if (is_half(r->dtype) && r->body)
        fac_text_print(to, "    const float whole = fac_round_%s(x);\n", name_of(r->dtype));
    else
        fac_text_add(to, "    const float whole = x;\n");
    fac_text_add(to, body.s ? body.s : "");
    fac_text_add(to, "    return result;\n}\nINLINE void finish4(float *v, const more *m) {\n"
                     "    UNROLL for (int k = 0; k < 4; k++) v[k] = finish(v[k]");
    for (int i = 0; i < r->extras; i++)
        fac_text_print(to, ", m->v[%d][%s]", i, is_bits(r->extra_dtype[i]) ? "0" : "k");
    fac_text_add(to, ");\n}\n");
    to->failed |= functions.failed | body.failed;
    fac_text_free(&functions);
    fac_text_free(&body);
    return good;
}

bool fac_nv_epilogue_text(const fac_cl_product *r, const fac_nv_ends *e, bool fp64, fac_text *to) {
    fac_text_add(to, fac_kernel_nv_epilogue);
    add_declarations(r, e, to);
    add_loads(r, e, true, to);
    add_loads(r, e, false, to);
    const bool good = add_finish(r, fp64, to);
    fac_text_print(to,
                   "INLINE void store4(const ends *e, const spot *s, int c, const float *v, global "
                   "RESULT *y) {\n"
                   "    nv_put_%s(y + e->p[0].at + s->at[0] + c, v);\n}\n",
                   name_of(r->result));
    return good && !to->failed;
}
