/* The OpenCL device's kernels but those of products, on fresh random shapes: odd sizes, lines long
 * enough for teams of work items and for several parts, channels last, gaps; shaped for a GPU and
 * for a CPU.  A compiler that runs on the CPU takes its time, so some of the problems are tried,
 * FACULA_ALL=1 tries all.  Skipped where no driver is. */
#include "opencl_solver_check.h"
#include "base/optional.h"

static int64_t number(int64_t least, int64_t most) {
    return least + (int64_t)(fac_random_bits(seed, ++stream, 0) % (uint64_t)(most - least + 1));
}

/* b, c, h, w, m, l between brackets stand for numbers, equal ones for equal numbers. */
static const struct template {
    const char *solver, *text;
    double tolerance;
}
templates[] = {
    { "reduce", "sum(f32[b,c,h,w], i64{0,2,3})", 2e-5 },
    { "reduce", "mean(f32[b,c,h,w], i64{2,3}) keep", 2e-5 },
    { "reduce", "sum(f32[l], -)", 1e-4 },
    { "reduce", "reduce_max(f32[c,m], i64{0})", 0 },
    { "reduce", "reduce_min(i16[b,m,h], i64{1})", 0 },
    { "reduce", "sum_like(f32[m,c], f32[c])", 1e-4 },
    { "softmax", "softmax(f32[c,m]) axis=1", 1e-5 },
    { "softmax", "log_softmax(f32[b,c,h,w]) axis=1", 1e-5 },
    { "arg", "arg_max(f32[c,m]) axis=1", 0 },
    { "arg", "hardmax(f32[m,c]) axis=0", 0 },
    { "norm", "layer_norm(f32[c,m], f32[m], f32[m]) axis=-1 epsilon=1e-5", 1e-4 },
    { "norm", "group_norm(f32[b,12,h,w], f32[12], f32[12]) groups=3 epsilon=1e-5", 1e-4 },
    { "batch_norm",
      "batch_norm(f32[b,c,h,w], f32[c], f32[c], f32[c], f32[c]) epsilon=1e-3 momentum=0.9 "
      "training_mode",
      1e-4 },
    { "batch_norm",
      "batch_norm(f32[b,c,h,w], f32[c], f32[c], f32[c], f32[c], f32[b,c,h,w]) epsilon=1e-3 "
      "training_mode "
      "{add(_, x1) relu}",
      1e-4 },
    { "batch_norm", "batch_norm_grad(f32[b,c,h,w], f32[b,c,h,w], f32[c]) epsilon=1e-3", 1e-3 },
    { "pool", "max_pool2d(f32[b,c,h,w]) kernel=3,3 stride=2,2 pad=1,1,1,1", 0 },
    { "pool", "avg_pool2d(f32[b,c,h,w]) kernel=3,2 stride=1,2 pad=1,1,1,0 count_include_pad",
      1e-5 },
    { "copy", "transpose(f32[b,h,w,c]) perm=0,3,1,2", 0 },
    { "copy", "transpose(u8[c,m]) perm=1,0", 0 },
    { "copy", "identity(f32[b,c,h,w])", 0 },
    { "concat", "concat(f32[b,c,h,w], f32[b,3,h,w]) axis=1", 0 },
    { "table", "pad(f32[b,c,h,w], i64{0,0,1,2,0,0,2,1}) mode=reflect", 0 },
    { "elementwise", "add(f32[b,c,h,w], f32[c,1,1])", 1e-6 },
    { "elementwise", "fused(f32[b,c,h,w], f32[c,1,1]) {t0 = mul(x0, x1); t1 = tanh(t0); t1}",
      1e-5 },
    { "lrn", "lrn(f32[b,c,h,w]) size=5 alpha=0.1 beta=0.75 bias=2", 1e-5 },
    { "scan", "cum_sum(f32[c,m], i64(1))", 1e-4 },
    { "top_k", "top_k(f32[c,m], i64{3}) axis=1", 0 },
    { "gather", "gather(f32[m,c], i64[w])", 0 },
    { "scatter", "gather_grad(f32[9,c], i64[h,w], f32[h,w,c])", 1e-4 },
    { "sum_square_all", "sum_square_all(f32[l], f32[c,m], f32[1])", 1e-4 }
};
enum { TEMPLATES = sizeof templates / sizeof *templates, SOME = 8 };

/* Letters between brackets become numbers. */
static void write_problem(const char *from, char *to, size_t size) {
    const int64_t b = number(1, 3), c = number(1, 40), h = number(1, 23), w = number(1, 37),
                  m = number(200, 3000), l = number(50000, 90000);
    size_t n = 0;
    bool inside = false;
    for (; *from && n + 24 < size; from++) {
        inside = *from == '[' || (inside && *from != ']');
        const char *at =
            inside && (from[-1] == '[' || from[-1] == ',') ? strchr("bchwml", *from) : NULL;
        const int64_t numbers[] = { b, c, h + 3, w + 3, m, l };
        if (at && *from)
            n += (size_t)snprintf(to + n, size - n, "%lld", (long long)numbers[at - "bchwml"]);
        else
            to[n++] = *from;
    }
    to[n] = 0;
}

static const fac_solver *solver_named(const char *name) {
    for (const fac_solver *const *s = device->backend->solvers; *s; s++)
        if (!strcmp((*s)->name, name)) return *s;
    fail_msg("there is no solver %s", name);
    return NULL;
}

static void random_shapes(void **state) {
    (void)state;
    if (!device) skip();
    const bool all = getenv("FACULA_ALL") != NULL;
    const int first = (int)number(0, TEMPLATES - 1);
    for (int k = 0; k < (all ? TEMPLATES : SOME); k++) {
        const struct template *t = &templates[(first + k * (all ? 1 : 7)) % TEMPLATES];
        char text[300];
        fac_graph *g = NULL;
        write_problem(t->text, text, sizeof text);
        fac_opencl_of(device)->limits.gpu = number(0, 1);
        channels_last = number(0, 1);
        const bool gaps = !channels_last && number(0, 1);
        print_message("%s%s%s%s\n", text, fac_text_if(fac_opencl_of(device)->limits.gpu, ", gpu"),
                      fac_text_if(channels_last, ", channels last"), fac_text_if(gaps, ", gaps"));
        OK(fac_problem_graph(text, false, &g, &err));
        const fac_case c = { text, -1, 4, t->tolerance };
        assert_true(solve(solver_named(t->solver), g->last, &c, gaps));
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_shapes) };
    return cmocka_run_group_tests_name("opencl shapes", tests, open_device, close_device);
}
