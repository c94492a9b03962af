/* Tensors of more than 2^32 bytes, and of more than 2^32 elements: sizes, places and counts of 64
 * bits in every solver that takes such a problem.
 *
 * Rows of the inputs repeat with a short period, so the results do, too: what the reference driver
 * makes of one period is all that has to be compared with, and the device itself compares every
 * element.  A device without memory for that does some of the same with few rows, which at least
 * tries the test; FACULA_ALL=1: all of them. */
#include "backends/opencl/device/launch.h"
#include "backends/layout_copy.h"
#include "op_list.h"
#include "opencl_solver_check.h"

/* @: rows, a multiple of the period.  Indices, when there are any, are of rows. */
typedef struct large {
    const char *problem;
    int64_t rows;
    int period;
    double lo, hi, tolerance;
} large;
static const large cases[] = {
    { "add(u8[@,65537], u8[65537])", 65793, 3, 0, 255, 0 },
    { "relu(f32[@,1000])", 1100001, 7, -1, 1, 0 },
    { "mul(f32[@,1000], f32[@,1])", 1100001, 7, -1, 1, 1e-6 },
    { "cast(u8[@,1000]) to=f32", 1100001, 7, 0, 255, 0 },
    { "transpose(u8[@,65537]) perm=1,0", 65793, 3, 0, 255, 0 },
    { "transpose(f32[@,50,20]) perm=0,2,1", 1100001, 7, -1, 1, 0 },
    { "slice(f32[@,1100], i64{3}, i64{1003}, i64{1})", 1100001, 7, -1, 1, 0 },
    { "concat(f32[@,600], f32[@,500]) axis=1", 1100001, 7, -1, 1, 0 },
    { "pad(f32[@,1000], i64{0,1,0,2})", 1100001, 7, -1, 1, 0 },
    { "gather(f32[@,1000], i64[500])", 1100001, 7, -1, 1, 0 },
    { "gather(u8[@,65537], i64[50])", 65793, 3, 0, 255, 0 },
    { "sum(f32[@,1000], i64{1})", 1100001, 7, -1, 1, 1e-5 },
    { "sum(i32[@,1000], i64{0})", 1100001, 7, -99, 99, 0 },
    { "sum(i32[@,1000], -)", 1100001, 7, -99, 99, 0 },
    { "sum(u8[@,65537], i64{0})", 65793, 3, 0, 255, 0 },
    { "reduce_max(f32[@,1000], i64{0})", 1100001, 7, -1, 1, 0 },
    { "softmax(f32[@,1000]) axis=1", 1100001, 7, -4, 4, 1e-5 },
    { "layer_norm(f32[@,1000], f32[1000], f32[1000]) axis=-1 epsilon=1e-5", 1100001, 7, -1, 1,
      1e-4 },
    { "cum_sum(i32[@,1000], i64(1))", 1100001, 7, -9, 9, 0 },
    { "arg_max(f32[@,1000]) axis=1", 1100001, 7, -1, 1, 0 },
    { "matmul(f32[@,1000], f32[1000,16])", 1100001, 7, -1, 1, 1e-4 },
    { "matmul(f32[@,16], f32[16,16500])", 66003, 7, -1, 1, 1e-4 },
    { "matmul(f32[@,40,100], f32[100,300])", 90002, 2, -1, 1, 1e-4 },
    { "matmul(bf16[@,1000], bf16[1000,16])", 2200002, 7, -1, 1, 4e-2 },
    { "conv2d(f32[@,64,28,28], f32[64,64,3,3], f32[64]) pad=1,1,1,1", 22000, 2, -1, 1, 1e-4 },
    { "conv2d(f32[@,64,28,28], f32[32,64,1,1], f32[32])", 22000, 2, -1, 1, 1e-4 },
    { "conv2d(f32[@,32,28,28], f32[32,1,3,3], f32[32]) pad=1,1,1,1 groups=32", 44000, 2, -1, 1,
      1e-4 },
    { "max_pool2d(f32[@,64,28,28]) kernel=2,2 stride=2,2", 22000, 2, -1, 1, 0 },
    { "batch_norm(f32[@,64,28,28], f32[64], f32[64], f32[64], f32[64]) epsilon=1e-5", 22000, 2, 0.1,
      2, 1e-4 },
};

static const char text[] =
    "kernel void spread(global WORD *x, ulong at, ulong period, ulong count) {\n"
    "    x += at;\n"
    "    for (ulong i = period + get_global_id(0); i < count; i += get_global_size(0)) x[i] = x[i "
    "% period];\n"
    "}\n"
    "#ifdef FLOAT\n"
    "#define OTHER(a, b) !(fabs(LOAD(a) - LOAD(b)) <= tolerance * (1 + fabs(LOAD(b))))\n"
    "#else\n"
    "#define OTHER(a, b) ((a) != (b))\n"
    "#endif\n"
    /* element i of y is the same as number  i / row * period + i % row % period  of what is wanted
     */
    "kernel void differ(global const WORD *y, ulong y_at, global const WORD *want, ulong want_at, "
    "ulong count, ulong row,\n"
    "                   ulong period, float tolerance, global uint *found, ulong found_at) {\n"
    "    y += y_at, want += want_at;\n"
    "    for (ulong i = get_global_id(0); i < count; i += get_global_size(0))\n"
    "        if (OTHER(y[i], want[i / row * period + i % row % period])) atomic_min(found + "
    "found_at, (uint)(i >> 10));\n"
    "}\n";

typedef struct part {
    fac_cl_arg args[12];
    uint64_t number[12];
    int n;
} part;

static void give_number(part *p, uint64_t x) {
    p->number[p->n] = x;
    p->args[p->n] = fac_cl_arg_value(&p->number[p->n], sizeof x);
    p->n++;
}

static void give_span(part *p, fac_span s, size_t element) {
    p->args[p->n++] = fac_cl_arg_span(s);
    give_number(p, fac_cl_at(s) / element);
}

static void launch(const char *name, const char *options, const part *p) {
    fac_opencl *o = fac_opencl_of(device);
    const fac_cl_range range = { 1, { 1 << 18 }, { 64 } };
    fac_cl_kernel k;
    OK(fac_cl_kernel_new(o, text, options, name, &k, &err));
    OK(fac_cl_launch(o, &k, &range, p->n, p->args, &err));
    fac_cl_kernel_free(o, &k);
}

static void write_problem(const char *from, int64_t rows, char *to, size_t size) {
    size_t n = 0;
    for (; *from && n + 24 < size; from++)
        n += (size_t)(*from == '@' ? snprintf(to + n, size - n, "%lld", (long long)rows)
                                   : snprintf(to + n, size - n, "%c", *from));
}

/* Where the sizes of two operands differ: the elements from there on, of each. */
static bool repeats(const fac_operand *big, const fac_operand *small, uint64_t *row,
                    uint64_t *period) {
    const fac_dims *a = &big->type.dims, *b = &small->type.dims;
    *row = *period = 1;
    bool differs = false;
    for (int k = a->n - 1; k >= 0 && !differs; k--) {
        *row *= (uint64_t)a->d[k];
        *period *= (uint64_t)b->d[k];
        differs = a->d[k] != b->d[k];
    }
    return differs;
}

/* Nothing reads the outputs after the first. */
static void describe(const fac_node *n, fac_operand *o, fac_problem *p) {
    *p = (fac_problem){ .node = n, .nin = n->nin, .nout = n->nout, .in = o, .out = o + n->nin };
    for (int i = 0; i < n->nin + n->nout; i++) {
        const fac_value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
        if (v && i <= n->nin)
            o[i] = (fac_operand){ v->type, fac_layout_plain(&v->type.dims), FAC_RUN, v->known };
    }
}

/* One period of each input, repeated on the device; indices reach all rows of it and are the same
 * modulo the period. */
static fac_span fill(const fac_operand *big, const fac_operand *small, const large *c, int64_t rows,
                     void *flat) {
    const size_t bytes = fac_layout_bytes(&big->layout, &big->type),
                 once = fac_layout_bytes(&small->layout, &small->type);
    const fac_layout plain = fac_layout_plain(&small->type.dims);
    void *placed = calloc(1, once);
    fac_span to = { 0 };
    part p = { .n = 0 };
    uint64_t row, period;
    OK(fac_device_alloc(device, bytes, &to.memory, &err));
    if (small->type.dtype == FAC_I64 && !repeats(big, small, &row, &period)) {
        int64_t *all = flat, *far = placed;
        for (int64_t i = 0, n = fac_dims_count(&small->type.dims); i < n; i++) {
            far[i] = rows - 1 - (int64_t)(fac_random_bits(seed, ++stream, 0) % (uint64_t)rows);
            all[i] = far[i] % c->period;
        }
    } else
        fac_copy_layout(&small->type, flat, &plain, placed, &small->layout);
    OK(device->backend->write(device, to, placed, once, &err));
    const size_t word = bytes % 4 || once % 4 ? 1 : 4;
    give_span(&p, to, word);
    give_number(&p, once / word);
    give_number(&p, bytes / word);
    if (bytes > once) launch("spread", word == 4 ? "-DWORD=uint" : "-DWORD=uchar", &p);
    free(placed);
    return to;
}

static double element(const fac_operand *x, fac_span at, uint64_t i) {
    char raw[8];
    double as = 0;
    const size_t size = (size_t)fac_dtype_get(x->type.dtype)->block_bytes;
    at.at += i * size;
    OK(device->backend->read(device, at, raw, size, &err));
    fac_convert(FAC_F64, &as, x->type.dtype, raw, 1);
    return as;
}

/* Every element of y against what the reference says of a period. */
static void expect(const char *what, const fac_operand *big, const fac_operand *small, fac_span y,
                   const void *flat, double tolerance) {
    const fac_dtype t = big->type.dtype;
    const size_t size = (size_t)fac_dtype_get(t)->block_bytes;
    const fac_layout plain = fac_layout_plain(&small->type.dims);
    const float within = (float)tolerance;
    side want = put(small, NULL);
    uint32_t none = UINT32_MAX, found = 0;
    fac_span at = { 0 };
    uint64_t row, period;
    part p = { .n = 0 };
    repeats(big, small, &row, &period);
    fac_copy_layout(&small->type, flat, &plain, want.host, &small->layout);
    OK(device->backend->write(device, want.span, want.host, want.bytes, &err));
    OK(fac_device_alloc(device, sizeof found, &at.memory, &err));
    OK(device->backend->write(device, at, &none, sizeof none, &err));
    give_span(&p, y, size);
    give_span(&p, want.span, size);
    give_number(&p, (uint64_t)fac_dims_count(&big->type.dims));
    give_number(&p, row);
    give_number(&p, period);
    p.args[p.n++] = fac_cl_arg_value(&within, sizeof within);
    give_span(&p, at, sizeof found);
    launch("differ",
           t == FAC_F32    ? "-DWORD=float -DFLOAT -DLOAD(x)=(x)"
           : t == FAC_BF16 ? "-DWORD=ushort -DFLOAT -DLOAD(x)=fac_from_bf16(x)"
           : size == 1     ? "-DWORD=uchar"
           : size == 4     ? "-DWORD=uint"
                           : "-DWORD=ulong",
           &p);
    OK(device->backend->read(device, at, &found, sizeof found, &err));
    for (uint64_t i = (uint64_t)found << 10;
         found != none && i < (uint64_t)fac_dims_count(&big->type.dims); i++) {
        const double is = element(big, y, i),
                     should = element(small, want.span, i / row * period + i % row % period);
        if (!(fabs(is - should) <= tolerance * (1 + fabs(should))))
            fail_msg("%s: element %llu is %.9g instead of %.9g", what, (unsigned long long)i, is,
                     should);
    }
    assert_int_equal(found, none);
    fac_device_release(device, at.memory, sizeof found);
    drop(&want);
}

/* Sums of whole numbers over all rows are so many times those of a period. */
static void count_periods(const fac_node *n, const fac_operand *small, int64_t times, void *flat) {
    const int64_t count = fac_dims_count(&small->type.dims);
    int32_t *x = flat;
    unsigned char *byte = flat;
    if (!FAC_IS(n, sum)) return;
    for (int64_t i = 0; i < count; i++) {
        if (small->type.dtype == FAC_I32) x[i] = (int32_t)((uint32_t)x[i] * (uint32_t)times);
        if (small->type.dtype == FAC_U8) byte[i] = (unsigned char)(byte[i] * times);
    }
}

/* One solver on one problem; false: it makes no offer, or would take too long. */
static bool large_solved(const fac_solver *s, const large *c, int64_t rows, const fac_node *of[2]) {
    fac_operand o[2][OPERANDS];
    fac_problem p[2];
    fac_offer offer = { 0 };
    fac_host host[OPERANDS] = { 0 };
    fac_span at[OPERANDS] = { 0 }, work = { 0 };
    void *plan = NULL, *flat[OPERANDS] = { NULL };
    size_t packed[FAC_OFFER_PACKED] = { 0 };
    uint64_t row, period;
    memset(o, 0, sizeof o);
    for (int k = 0; k < 2; k++) describe(of[k], o[k], &p[k]);
    const int nin = p[0].nin, n = nin + p[0].nout;
    if (!fac_solver_offer(s, device, &p[0], &offer)) return false;
    if (offer.seconds > 1) {
        fac_offer_drop(&offer);
        return false;
    }
    for (int i = 0; i < n; i++) {
        fac_operand *big = &o[0][i], *small = &o[1][i];
        if (big->type.dtype == FAC_NONE) continue;
        const bool ours = fac_layout_is_plain(&big->layout, &big->type.dims);
        small->layout = ours ? fac_layout_plain(&small->type.dims) : big->layout;
        host[i] = (fac_host){ small->type, NULL, small->known };
        if (small->known) continue;
        flat[i] = contents(small->type, c->lo, c->hi);
        host[i].data = flat[i];
        if (i < nin)
            at[i] = fill(big, small, c, rows, flat[i]);
        else
            OK(fac_device_alloc(device, fac_layout_bytes(&big->layout, &big->type), &at[i].memory,
                                &err));
    }
    if (fac_solver_make(s, device, &p[0], &offer, &plan, &err))
        fail_msg("%s: %s", c->problem, err.text);
    for (int i = 0; i < FAC_OFFER_PACKED && i < nin; i++) {
        fac_span to = { 0 };
        if (!(packed[i] = offer.packed[i])) continue;
        OK(fac_device_alloc(device, packed[i], &to.memory, &err));
        OK(s->pack(plan, device, i, at[i], to, &err));
        fac_device_release(device, at[i].memory, fac_layout_bytes(&o[0][i].layout, &o[0][i].type));
        at[i] = to;
    }
    if (offer.work) OK(fac_device_alloc(device, offer.work, &work.memory, &err));
    if (run_alone(s, plan, at, nin, n - nin, work)) fail_msg("%s: %s", c->problem, err.text);
    OK(fac_ref_node(of[1], host, host + nin, NULL, &err));
    for (int i = nin; i < n; i++) {
        if (!flat[i]) continue;
        if (!repeats(&o[0][i], &o[1][i], &row, &period))
            count_periods(of[1], &o[1][i], rows / c->period, flat[i]);
        expect(c->problem, &o[0][i], &o[1][i], at[i], flat[i], c->tolerance);
    }
    if (s->done) s->done(device, plan);
    fac_device_release(device, work.memory, offer.work);
    for (int i = 0; i < n; i++) {
        const bool is_packed = i < FAC_OFFER_PACKED && packed[i];
        if (at[i].memory)
            fac_device_release(device, at[i].memory,
                               is_packed ? packed[i]
                                         : fac_layout_bytes(&o[0][i].layout, &o[0][i].type));
        free(flat[i]);
    }
    return true;
}

/* The largest operand, and all of them. */
static void bytes_of(const fac_node *n, size_t *largest, size_t *all) {
    *largest = *all = 0;
    for (int i = 0; i < n->nin + n->nout; i++) {
        const fac_value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
        const size_t bytes = v ? fac_type_bytes(&v->type) : 0;
        *all += bytes;
        if (bytes > *largest) *largest = bytes;
    }
}

/* The solvers that take a problem; whether it was of full size. */
static bool try_case(const large *c) {
    const fac_gpu_limits *l = &fac_opencl_of(device)->limits;
    const char *only = getenv("FACULA_SOLVER");
    int64_t rows = c->rows;
    fac_graph *g[2] = { NULL };
    char problem[200], names[400] = "";
    size_t largest, all;
    write_problem(c->problem, rows, problem, sizeof problem);
    OK(fac_problem_graph(problem, false, &g[0], &err));
    bytes_of(g[0]->last, &largest, &all);
    assert_true(largest > (size_t)1 << 32);
    const bool room = l->gpu && l->largest > largest && l->memory / 3 > all;
    if (!room) {
        fac_graph_free(g[0]);
        write_problem(c->problem, rows = 5 * c->period, problem, sizeof problem);
        OK(fac_problem_graph(problem, false, &g[0], &err));
    }
    write_problem(c->problem, c->period, problem, sizeof problem);
    OK(fac_problem_graph(problem, false, &g[1], &err));
    int solved = 0;
    for (const fac_solver *const *s = device->backend->solvers; *s; s++) {
        const size_t used = strlen(names);
        if (only && strcmp(only, (*s)->name)) continue;
        if (((*s)->op && (*s)->op != g[0]->last->op) ||
            !large_solved(*s, c, rows, (const fac_node *[]){ g[0]->last, g[1]->last }))
            continue;
        snprintf(names + used, sizeof names - used, " %s", (*s)->name);
        solved++;
        fac_device_trim(device);
    }
    print_message("%-84s%s\n", c->problem, names);
    assert_true(only || solved);
    for (int k = 0; k < 2; k++) fac_graph_free(g[k]);
    return room;
}

static void tensors_of_more_than_2_to_the_32(void **state) {
    (void)state;
    if (!device) skip();
    enum { CASES = sizeof cases / sizeof *cases, FEW = 4 };
    const int first = (int)(fac_random_bits(seed, ++stream, 0) % CASES);
    int full = 0;
    for (int k = 0; k < CASES && (full == k || k < FEW || getenv("FACULA_ALL")); k++)
        full += try_case(&cases[(first + k) % CASES]);
    if (full == CASES) return;
    print_message("full sizes: skipped, this device has not the memory for tensors of 4.4 GB\n");
    skip();
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(tensors_of_more_than_2_to_the_32) };
    return cmocka_run_group_tests_name("opencl large", tests, open_device, close_device);
}
