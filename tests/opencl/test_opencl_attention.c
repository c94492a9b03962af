/* attention/few on OpenCL against sums in f64: grouped heads, lengths, causal, windows, soft caps,
 * queries that see no key, more keys than a chunk has. */
/* clang-format off */
#include "opencl_check.h"
#include "blocks_check.h"
#include "backends/opencl/device/opencl.h"
/* clang-format on */

static fac_device *device;

typedef struct problem {
    int64_t B, H, G, Q, T, D, E;
    bool counted, flat;
    fac_attention_opts o;
    const float *q, *k, *v;
    const int64_t *lengths;
} problem;

static fac_tensor *lengths_of(const problem *p) {
    fac_tensor *t;
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(p->B), &t, &err));
    int64_t *x = fac_tensor_storage(t)->host;
    for (int64_t b = 0; b < p->B; b++) x[b] = (int64_t)draw((uint64_t)p->T + 1);
    return t;
}

static bool sees(const problem *p, int64_t b, int64_t i, int64_t j) {
    const int64_t n = p->counted ? p->lengths[b] : p->T;
    const int64_t at = i + (p->counted ? n - p->Q : 0);
    if (j >= n) return false;
    if (!p->o.causal) return true;
    return j <= at && (!p->o.window || j > at - p->o.window);
}

/* Element e of query i of head h. */
static double exact(const problem *p, int64_t b, int64_t h, int64_t i, int64_t e) {
    const int64_t row = p->flat ? (b * p->Q + i) * p->H + h : (b * p->H + h) * p->Q + i;
    const int64_t heads = (b * p->G + h / (p->H / p->G)) * p->T;
    const double scale = p->o.scale != 0 ? p->o.scale : 1 / sqrt((double)p->D);
    double sum = 0, all = 0;
    for (int64_t j = 0; j < p->T; j++) {
        double x = 0;
        if (!sees(p, b, i, j)) continue;
        for (int64_t d = 0; d < p->D; d++)
            x += (double)p->q[row * p->D + d] * (double)p->k[(heads + j) * p->D + d];
        x *= scale;
        if (p->o.softcap > 0) x = p->o.softcap * tanh(x / p->o.softcap);
        all += exp(x);
        sum += exp(x) * (double)p->v[(heads + j) * p->E + e];
    }
    return all > 0 ? sum / all : 0;
}

static fac_tensor *computed(const problem *p, fac_tensor *const in[4]) {
    static const char *const names[] = { "q", "k", "v", "lengths" };
    fac_graph *g = fac_graph_new();
    fac_program *program;
    fac_tensor *y = NULL;
    fac_value *x[4] = { NULL };
    const int n = p->counted ? 4 : 3;
    for (int i = 0; i < n; i++) {
        const fac_type t = fac_tensor_type(in[i]);
        x[i] = fac_input(g, names[i], t.dtype, t.dims);
    }
    fac_output(g, "y", fac_attention(x[0], x[1], x[2], NULL, NULL, NULL, x[3], &p->o));
    OK(fac_graph_check(g, &err));
    const fac_program_opts o = { .solver = "attention/few" };
    OK(fac_program_new(g, device, &o, &program, &err));
    OK(fac_program_run(program, in, &y, &err));
    fac_program_free(program);
    fac_graph_free(g);
    return y;
}

static problem drawn_problem(int round) {
    problem p = { .B = 1 + (int64_t)draw(3), .G = 1 + (int64_t)draw(3), .counted = draw(3) > 0 };
    p.flat = draw(2);
    p.H = p.G * (1 + (int64_t)draw(3));
    p.Q = round % 2 ? 1 : 1 + (int64_t)draw(9);
    p.T = round % 5 == 4 ? 1000 + (int64_t)draw(1500) : 1 + (int64_t)draw(200);
    p.D = round % 3 ? 4 * (1 + (int64_t)draw(20)) : 1 + (int64_t)draw(70);
    p.E = round % 3 ? 4 * (1 + (int64_t)draw(20)) : 1 + (int64_t)draw(70);
    p.o = (fac_attention_opts){ .q_heads = p.flat ? p.H : 0,
                                .scale = draw(2) ? 0.3 : 0,
                                .softcap = draw(4) ? 0 : 2,
                                .causal = draw(2) };
    if (p.o.causal && draw(2)) p.o.window = 1 + (int64_t)draw(50);
    return p;
}

static void check(problem p) {
    fac_tensor *in[4] = {
        floats(p.flat ? fac_shape(p.B, p.Q, p.H * p.D) : fac_shape(p.B, p.H, p.Q, p.D)),
        floats(fac_shape(p.B, p.G, p.T, p.D)), floats(fac_shape(p.B, p.G, p.T, p.E)), lengths_of(&p)
    };
    p.q = fac_tensor_data(in[0]);
    p.k = fac_tensor_data(in[1]);
    p.v = fac_tensor_data(in[2]);
    p.lengths = fac_tensor_data(in[3]);
    fac_tensor *y = computed(&p, in);
    const float *have = fac_tensor_data(y);
    for (int64_t u = 0; u < p.B * p.H * p.Q * p.E; u++) {
        const int64_t e = u % p.E, i = u / p.E % p.Q, h = u / p.E / p.Q % p.H;
        const int64_t b = u / p.E / p.Q / p.H;
        const int64_t at = p.flat ? ((b * p.Q + i) * p.H + h) * p.E + e : u;
        const double off = fabs((double)have[at] - exact(&p, b, h, i, e));
        if (!(off < 1e-5))
            fail_msg("B %lld H %lld G %lld Q %lld T %lld D %lld E %lld window %lld: off by %g",
                     (long long)p.B, (long long)p.H, (long long)p.G, (long long)p.Q, (long long)p.T,
                     (long long)p.D, (long long)p.E, (long long)p.o.window, off);
    }
    for (int i = 0; i < 4; i++) fac_tensor_free(in[i]);
    fac_tensor_free(y);
}

static void few_queries(void **state) {
    (void)state;
    if (!device) skip();
    for (int round = 0; round < 20; round++) {
        fac_opencl_of(device)->limits.gpu = round & 1; /* both shapes of the kernel */
        check(drawn_problem(round));
    }
}

int main(void) {
    seed = fresh_seed();
    if (opencl_open(&device, &err)) return 1;
    const struct CMUnitTest tests[] = { cmocka_unit_test(few_queries) };
    const int failed = cmocka_run_group_tests_name("opencl attention", tests, NULL, NULL);
    fac_device_free(device);
    return failed;
}
