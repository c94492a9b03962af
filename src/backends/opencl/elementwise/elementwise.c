/* Solver "elementwise", and the kernels around its expressions: see elementwise.h. */
#include <stdio.h>
#include <string.h>
#include "backends/opencl/elementwise/elementwise.h"
#include "base/clamp.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum {
    GROUP = 256,
    FEW = 16,
    LONG_RUN = 4096,
    ACCESS = 16,
    MOST_NEAR = 8,
    ASKED = 32,
    HOLDS = 2048,            /* bytes that an item asks for at once; items of a compute unit */
    LARGEST_ARGUMENTS = 4096 /* more is not everywhere what it is said to be */
};

/* ---- the kernel ---- */

static const fac_operand *operand(const fac_problem *p, int i) {
    return i < p->nin ? &p->in[i] : &p->out[i - p->nin];
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Of each operand a place and a pointer, of each set where it begins and how many there are. */
int fac_cl_sets_most(const fac_opencl *o, const fac_gpu_walk *w) {
    const size_t operands = (size_t)w->operands,
                 bytes = least(o->limits.arguments, LARGEST_ARGUMENTS), word = sizeof(int64_t);
    const size_t shared = word * (4 + (size_t)w->dims * (1 + operands)),
                 each = word * (2 * operands + 2);
    const size_t most = least(bytes > shared ? (bytes - shared) / each : 0,
                              least(FAC_CL_BUFFERS / operands, FAC_CL_SETS));
    return most < 1 ? 1 : (int)most;
}

static void add_arguments(fac_text *t, const fac_problem *p, const fac_gpu_walk *w,
                          const fac_cl_sets *sets) {
    fac_text_print(t,
                   "typedef struct { long at[%d], first[%d], count[%d], runs, run, size[%d], "
                   "stride[%d][%d]; } shape;\n",
                   sets->n * w->operands, sets->n + 1, sets->n, w->dims, w->operands, w->dims);
    fac_text_print(t, "typedef %s pos;\nkernel void elementwise(const shape s",
                   fac_gpu_walk_is_wide(w) ? "long" : "int");
    for (int k = 0; k < sets->n * w->operands; k++) {
        const int i = sets->operand[k];
        fac_text_print(t, ", global %s%s *y%d", i < p->nin ? "const " : "",
                       fac_cl_in_memory(operand(p, i)->type.dtype), k);
    }
    fac_text_add(t, ") {\n");
}

/* Pointers x0, x1, ... at the first element of this item's run. */
static void add_head(fac_text *t, const fac_problem *p, const fac_gpu_walk *w,
                     const fac_cl_sets *sets) {
    fac_text_add(t, "    const pos unit = get_global_id(0);\n    pos in_set, n;\n");
    for (int k = 0; k < w->operands; k++) {
        const int i = sets->operand[k];
        fac_text_print(t, "    global %s%s *x%d;\n", i < p->nin ? "const " : "",
                       fac_cl_in_memory(operand(p, i)->type.dtype), k);
    }
    fac_text_print(t, "    if (unit >= s.first[%d]) return;\n", sets->n);
    for (int j = sets->n - 1; j >= 0; j--) {
        fac_text_print(t, j ? "    if (unit >= s.first[%d]) {\n" : "    {\n", j);
        fac_text_print(t, "        in_set = unit - s.first[%d], n = s.count[%d];\n", j, j);
        for (int k = 0; k < w->operands; k++)
            fac_text_print(t, "        x%d = y%d + s.at[%d];\n", k, j * w->operands + k,
                           j * w->operands + k);
        fac_text_add(t, j ? "    } else\n" : "    }\n");
    }
    fac_text_add(t, "    const pos from = in_set % (pos)s.runs * (pos)s.run;\n    pos rest = "
                    "in_set / (pos)s.runs, c;\n"
                    "    n = min(n - from, (pos)s.run);\n");
    for (int k = w->dims - 1; k >= 0; k--) {
        const char *which = k == w->dims - 1 ? "from" : "c";
        if (k < w->dims - 1)
            fac_text_print(t,
                           k ? "    c = rest %% (pos)s.size[%d], rest /= (pos)s.size[%d];\n"
                             : "    c = rest;\n",
                           k, k);
        for (int i = 0; i < w->operands; i++) {
            if (w->stride[i][k] == 1)
                fac_text_print(t, "    x%d += %s;\n", i, which);
            else if (w->stride[i][k])
                fac_text_print(t, "    x%d += %s * (pos)s.stride[%d][%d];\n", i, which, i, k);
        }
    }
}

/* Where operand k lies along the last dim, counted by i. */
static void add_places(fac_text *t, const fac_gpu_walk *w) {
    const int last = w->dims - 1;
    for (int k = 0; k < w->operands; k++) {
        if (w->stride[k][last] == 1)
            fac_text_print(t, "        const pos a%d = i;\n", k);
        else if (w->stride[k][last] == 0)
            fac_text_print(t, "        const pos a%d = 0;\n", k);
        else
            fac_text_print(t, "        const pos a%d = i * (pos)s.stride[%d][%d];\n", k, k, last);
    }
}

/* Whether a body takes so long that an item should ask for more at once; others are as fast
 * without. */
static bool is_slow(const fac_cl_expression *e) {
    static const char *const slow[] = { "EXP", "LOG", "TANH", "ERF", "SIGMOID", "GELU", "POW" };
    for (size_t k = 0; e->functions.s && k < sizeof slow / sizeof *slow; k++)
        if (strstr(e->functions.s, slow[k])) return true;
    return false;
}

/* What operand k of a set comes and goes in, `near` elements at once. */
static const char *access_of(const fac_problem *p, const fac_cl_expression *e,
                             const fac_cl_sets *sets, int k, int near, char *to, size_t size) {
    const char *type = fac_cl_in_memory(operand(p, sets->operand[k])->type.dtype);
    if (near == 8 && !strcmp(type, "ushort") && is_slow(e)) return "uint4";
    snprintf(to, size, "%s%d", type, near);
    return to;
}

/* One access: x0, x1, ... are what came as in0, in1, ... (`which`: of several); results go to to0,
 * to1, ... */
static void add_access(fac_text *t, const fac_problem *p, const fac_gpu_walk *w,
                       const fac_cl_expression *e, const fac_cl_sets *sets, int near,
                       const char *which, const char *where) {
    char name[24];
    fac_text_add(t, "        {\n");
    for (int k = 0; k < w->operands; k++) {
        const char *type = fac_cl_in_memory(operand(p, sets->operand[k])->type.dtype);
        const bool in = sets->operand[k] < p->nin, many = w->stride[k][w->dims - 1];
        const bool words = !strcmp(access_of(p, e, sets, k, near, name, sizeof name), "uint4");
        fac_text_print(t, "        %s x%d[%d];\n", type, k, many ? near : 1);
        if (in && many && words)
            fac_text_print(t, "        fac_split(in%d%s, x%d);\n", k, which, k);
        else if (in && many)
            fac_text_print(t, "        vstore%d(in%d%s, 0, x%d);\n", near, k, which, k);
        else if (in)
            fac_text_print(t, "        x%d[0] = in%d;\n", k, k);
    }
    fac_text_print(t, "#pragma unroll\n        for (pos i = 0; i < %d; i++) {\n", near);
    add_places(t, w);
    fac_text_add(t, e->statements.s ? e->statements.s : "");
    fac_text_add(t, "        }\n");
    for (int k = 0; k < w->operands; k++) {
        if (sets->operand[k] < p->nin) continue;
        const bool words = !strcmp(access_of(p, e, sets, k, near, name, sizeof name), "uint4");
        if (words)
            fac_text_print(t, "        to%d[%s] = fac_join(x%d);\n", k, where, k);
        else
            fac_text_print(t, "        to%d[%s] = vload%d(0, x%d);\n", k, where, near, k);
    }
    fac_text_add(t, "        }\n");
}

/* A whole run of `near` elements comes and goes in one access of each operand. */
static void add_near(fac_text *t, const fac_problem *p, const fac_gpu_walk *w,
                     const fac_cl_expression *e, const fac_cl_sets *sets, int near) {
    char name[24];
    fac_text_add(t, "    {\n");
    for (int k = 0; k < w->operands; k++) {
        const char *type = fac_cl_in_memory(operand(p, sets->operand[k])->type.dtype),
                   *access = access_of(p, e, sets, k, near, name, sizeof name);
        const bool in = sets->operand[k] < p->nin;
        if (!in)
            fac_text_print(t, "        global %s *to%d = (global %s *)x%d;\n", access, k, access,
                           k);
        else if (w->stride[k][w->dims - 1])
            fac_text_print(t, "        const %s in%d = *(global const %s *)x%d;\n", access, k,
                           access, k);
        else
            fac_text_print(t, "        const %s in%d = x%d[0];\n", type, k, k);
    }
    add_access(t, p, w, e, sets, near, "", "0");
    fac_text_add(t, "    }\n");
}

/* One long run: an item does `ahead` accesses of each operand, a group's width from one another,
 * all of whose inputs are on their way before the first is needed. */
static void add_ahead(fac_text *t, const fac_problem *p, const fac_gpu_walk *w,
                      const fac_cl_expression *e, const fac_cl_sets *sets, int near, int ahead) {
    char name[24];
    fac_text_print(
        t,
        "    const pos all = (pos)s.first[1], side = (pos)get_local_size(0);\n"
        "    const pos unit = (pos)get_group_id(0) * side * %d + (pos)get_local_id(0);\n",
        ahead);
    for (int k = 0; k < w->operands; k++) {
        const char *type = fac_cl_in_memory(operand(p, sets->operand[k])->type.dtype),
                   *access = access_of(p, e, sets, k, near, name, sizeof name);
        const bool in = sets->operand[k] < p->nin;
        if (!in)
            fac_text_print(t, "    global %s *to%d = (global %s *)(y%d + s.at[%d]);\n", access, k,
                           access, k, k);
        else if (w->stride[k][0])
            fac_text_print(t,
                           "    global const %s *from%d = (global const %s *)(y%d + s.at[%d]);\n   "
                           " %s in%d[%d];\n",
                           access, k, access, k, k, access, k, ahead);
        else
            fac_text_print(t, "    const %s in%d = y%d[s.at[%d]];\n", type, k, k, k);
    }
    fac_text_print(t,
                   "#pragma unroll\n    for (int j = 0; j < %d; j++) {\n"
                   "        const pos at = min(unit + j * side, all - 1);\n",
                   ahead);
    for (int k = 0; k < w->operands; k++)
        if (sets->operand[k] < p->nin && w->stride[k][0])
            fac_text_print(t, "        in%d[j] = from%d[at];\n", k, k);
    fac_text_print(t,
                   "    }\n#pragma unroll\n    for (int j = 0; j < %d; j++) {\n        const pos "
                   "at = unit + j * side;\n"
                   "        if (at >= all) break;\n",
                   ahead);
    add_access(t, p, w, e, sets, near, "[j]", "at");
    fac_text_add(t, "    }\n}\n");
}

/* near: how many elements an item of a GPU does; 0 on others.  rest: some sets end with fewer. */
static void add_kernel(fac_text *t, const fac_problem *p, const fac_gpu_walk *w,
                       const fac_cl_expression *e, const fac_cl_sets *sets, int near, int ahead,
                       bool rest) {
    fac_text_add(t, e->functions.s ? e->functions.s : "");
    add_arguments(t, p, w, sets);
    if (ahead > 1) {
        add_ahead(t, p, w, e, sets, near, ahead);
        return;
    }
    add_head(t, p, w, sets);
    if (near > 1 && rest) fac_text_print(t, "    if (n == %d)\n", near);
    if (near > 1) add_near(t, p, w, e, sets, near);
    if (near > 1 && rest) fac_text_add(t, "    else\n");
    if (near == 1)
        fac_text_add(t, "    {\n        const pos i = 0;\n");
    else if (near && rest)
        fac_text_add(t, "    for (pos i = 0; i < n; i++) {\n");
    else if (!near)
        fac_text_add(
            t, "#pragma clang loop vectorize(assume_safety)\n    for (pos i = 0; i < n; i++) {\n");
    if (near < 2 || rest) {
        add_places(t, w);
        fac_text_add(t, e->statements.s ? e->statements.s : "");
        fac_text_add(t, "    }\n");
    }
    fac_text_add(t, "}\n");
}

/* How many neighbours an item of a GPU does at once: 16 bytes of the largest elements, where rows
 * begin at multiples of that. */
static int near_of(const fac_problem *p, const fac_cl_sets *sets) {
    const fac_gpu_walk *first = sets->walk[0];
    int near = MOST_NEAR;
    for (int k = 0; k < first->operands; k++) {
        const int most =
            ACCESS / fac_dtype_get(operand(p, sets->operand[k])->type.dtype)->block_bytes;
        const int64_t step = first->stride[k][first->dims - 1];
        if (step != 0 && step != 1) return 1;
        if (step == 0 && sets->operand[k] >= p->nin) return 1;
        if (step && most < near) near = most;
    }
    for (int j = 0; j < sets->n; j++) {
        const fac_gpu_walk *w = sets->walk[j];
        for (int k = 0; k < w->operands; k++) {
            if (w->stride[k][w->dims - 1] == 1 && w->offset[k] % near) return 1;
            for (int a = 0; a < w->dims - 1; a++)
                if (w->stride[k][w->dims - 1] == 1 && w->stride[k][a] % near) return 1;
        }
    }
    return near < 1 ? 1 : near;
}

/* How many accesses an item of a slow body does: until it asks for `ASKED` bytes at once, where
 * there is one long run, and still an item for each that a GPU can hold. */
static int ahead_of(const fac_opencl *o, const fac_problem *p, const fac_cl_expression *e,
                    const fac_cl_sets *sets, int near, bool rest) {
    const fac_gpu_walk *w = sets->walk[0];
    int bytes = 0, ahead = 1;
    if (near < 2 || rest || sets->n > 1 || w->dims > 1 || !is_slow(e)) return 1;
    for (int k = 0; k < w->operands; k++)
        if (sets->operand[k] < p->nin && w->stride[k][0])
            bytes += near * fac_dtype_get(operand(p, sets->operand[k])->type.dtype)->block_bytes;
    while (bytes && bytes * ahead * 2 <= ASKED) ahead *= 2;
    return w->count / (uint64_t)(near * ahead) < (uint64_t)o->limits.units * HOLDS ? 1 : ahead;
}

fac_status fac_cl_elementwise_add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                                  const fac_cl_expression *e, const fac_cl_sets *sets,
                                  fac_error *err) {
    const fac_gpu_walk *w = sets->walk[0];
    const int last = w->dims - 1;
    int64_t longest = 0, first[FAC_CL_SETS + 1] = { 0 };
    fac_text text = { 0 }, options = { 0 };
    fac_cl_call *c = NULL;
    const int near = o->limits.gpu ? near_of(p, sets) : 0;
    bool rest = false;
    for (int j = 0; j < sets->n; j++) {
        const int64_t size = (int64_t)sets->walk[j]->size[last];
        if (size > longest) longest = size;
        rest |= near && size % near;
    }
    const int ahead = ahead_of(o, p, e, sets, near, rest);
    add_kernel(&text, p, w, e, sets, near, ahead, rest);
    fac_text_add(&options, e->doubles ? "" : "-cl-single-precision-constant");
    text.failed |= options.failed;
    fac_status status =
        fac_cl_call_text(o, plan, &text, options.s ? options.s : "", "elementwise", &c, err);
    fac_text_free(&options);
    fac_text_free(&text);
    FAC_TRY(status);
    for (int k = 0; k < sets->n * w->operands; k++) {
        const int i = sets->operand[k];
        if (i < p->nin)
            fac_cl_call_in(c, p, i);
        else
            fac_cl_call_out(c, p, i - p->nin);
    }
    const int64_t run = near ? near : fac_clamp(longest, 1, LONG_RUN);
    for (int j = 0; j < sets->n; j++) {
        const int64_t size = (int64_t)sets->walk[j]->size[last], runs = (size + run - 1) / run;
        first[j + 1] = first[j] + (size ? (int64_t)sets->walk[j]->count / size * runs : 0);
    }
    for (int j = 0; j <= sets->n; j++) fac_cl_call_number(c, first[j]);
    for (int j = 0; j < sets->n; j++) fac_cl_call_number(c, (int64_t)sets->walk[j]->size[last]);
    if (w->dims == 1)
        fac_cl_call_number(c, fac_gpu_walk_is_wide(w) ? INT64_MAX : INT32_MAX);
    else
        fac_cl_call_number(c, ((int64_t)w->size[last] + run - 1) / run);
    fac_cl_call_number(c, run);
    for (int k = 0; k < w->dims; k++) fac_cl_call_number(c, (int64_t)w->size[k]);
    for (int i = 0; i < w->operands; i++)
        for (int k = 0; k < w->dims; k++) fac_cl_call_number(c, w->stride[i][k]);
    const size_t group = o->limits.gpu          ? least(o->limits.group, GROUP)
                         : run * FEW > LONG_RUN ? 1
                                                : FEW;
    const size_t each = group * (size_t)ahead;
    fac_cl_call_items(c, ((size_t)first[sets->n] + each - 1) / each * group, group);
    return FAC_OK;
}

/* ---- the solver ---- */

static bool has_expression(const fac_opencl *o, const fac_problem *p) {
    fac_cl_expression e;
    if (!fac_cl_expression_of(p, o->limits.fp64, &e)) return e.lost;
    fac_cl_expression_free(&e);
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    fac_gpu_walk w;
    const fac_op *op = p->node->op;
    if (!op->map && op != &fac_op_cast && op != &fac_op_fused) return false;
    for (int i = 0; i < p->nin + p->nout; i++) {
        fac_operand *x = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        if (x->layout.block) x->layout = fac_layout_plain(&x->type.dims);
    }
    for (int i = 0; i < p->nin; i++) /* results lie as the inputs of their shape do */
        for (int k = 0; k < p->nout; k++)
            if (fac_dims_equal(&p->in[i].type.dims, &p->out[k].type.dims))
                fac_cl_lay_alike(&p->in[i], &p->out[k]);
    if (!fac_gpu_walk_of(p, &w) || !has_expression(o, p)) return false;
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    fac_gpu_walk w;
    const fac_gpu_walk *const one[] = { &w };
    int operands[FAC_GPU_OPERANDS];
    fac_cl_expression e;
    for (int i = 0; i < FAC_GPU_OPERANDS; i++) operands[i] = i;
    if (!fac_gpu_walk_of(p, &w) || !fac_cl_expression_of(p, o->limits.fp64, &e))
        return fac_raise(err, FAC_E_NOMEM, "elementwise: no memory for what %s says",
                         p->node->op->name);
    fac_status status =
        w.count ? fac_cl_elementwise_add(o, p, plan, &e, &(fac_cl_sets){ 1, one, operands }, err)
                : FAC_OK;
    fac_cl_expression_free(&e);
    return status;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_elementwise = { .name = "elementwise",
                                        .op = NULL,
                                        .rank = 20,
                                        .offer = offer,
                                        .make = make,
                                        .done = fac_cl_plan_done,
                                        .run = fac_cl_plan_run };
