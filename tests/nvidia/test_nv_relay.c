/* Relays on NVIDIA.  On any machine: texts of their kernels (written to the folder FACULA_KERNELS,
 * for scripts/check_ptx.sh), and what solvers offer for.  Where groups can meet: every solver that
 * relays take on odd shapes against the reference, every variant, and networks in few launches
 * against the same ones by other kernels, from several threads. */
#include "nv_conv_check.h"
#include "backends/opencl/nvidia/relay/relay.h"
#include "backends/opencl/device/probe.h"
#include "opencl_solvers.h"
#include "facula/facula.h"

enum { LOCAL_BYTES = 99 << 10, LEGS = 72 };

static fac_nv_code conv_code(fac_nv_mode how, int pixels, int columns, int depth, bool window) {
    fac_nv_code c;
    memset(&c, 0, sizeof c);
    c.kind = FAC_NV_LEG_CONV;
    c.pixels = pixels;
    c.columns = columns;
    c.depth = depth;
    c.mode = how;
    c.window = window;
    c.ragged = window && columns == 16;
    c.row = how == FAC_NV_3XTF32 ? 64 : 128;
    c.x = FAC_F32;
    if (how == FAC_NV_BF16) c.x = FAC_BF16;
    if (how == FAC_NV_F16) c.x = FAC_F16;
    c.result = c.bias = c.add = c.x;
    return c;
}

static fac_nv_code other_code(fac_nv_leg_kind kind, fac_dtype t, int taps, bool average) {
    fac_nv_code c;
    memset(&c, 0, sizeof c);
    c.kind = kind;
    c.r = c.s = taps;
    c.average = average;
    c.x = c.result = t;
    c.bias = c.add = FAC_F32;
    return c;
}

static void write_kernel(const char *name, int k, const fac_nv_code *codes, int n,
                         fac_dtype rounded) {
    static const char *const bodies[] = {
        "conv2d(f32[1,8,4,4], f32[8,8,1,1], f32[8]) {relu}",
        "conv2d(f32[1,8,4,4], f32[8,8,1,1], f32[8], f32[1,8,4,4]) {add(_, x1) relu}",
        "conv2d(f32[1,8,4,4], f32[8,8,1,1], f32[8]) {silu}"
    };
    enum { BODIES = sizeof bodies / sizeof *bodies };
    fac_graph *g[BODIES] = { 0 };
    fac_nv_finish f[BODIES + 1] = { 0 };
    fac_text t = { 0 };
    for (int i = 0; i < BODIES; i++) {
        OK(fac_problem_graph(bodies[i], false, &g[i], &err));
        f[i] = (fac_nv_finish){ true, rounded, g[i]->last->body[0] };
    }
    assert_true(fac_nv_relay_text(codes, n, f, BODIES + 1, false, LEGS, 100, &t));
    assert_null(strstr(t.s, FAC_NV_MARK));
    keep("relay", name, k, &t);
    fac_text_free(&t);
    for (int i = 0; i < BODIES; i++) fac_graph_free(g[i]);
}

static void kernels_are_written(void **state) {
    static const struct {
        const char *name;
        fac_nv_mode how;
        fac_dtype type;
    } kinds[] = { { "3xtf32", FAC_NV_3XTF32, FAC_F32 },
                  { "tf32", FAC_NV_TF32, FAC_F32 },
                  { "bf16", FAC_NV_BF16, FAC_BF16 },
                  { "f16", FAC_NV_F16, FAC_F16 } };
    (void)state;
    /* the table, two rooms for the sums of the largest tiles, and what else there is */
    assert_true(LEGS * sizeof(fac_nv_leg) + 2 * FAC_NV_RELAY_WARPS * 32 * 32 * sizeof(float) +
                    2048 <=
                LOCAL_BYTES);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const fac_nv_mode m = kinds[i].how;
        const fac_dtype t = kinds[i].type;
        const fac_nv_code all[] = { conv_code(m, 16, 16, 4, false),
                                    conv_code(m, 16, 16, 4, true),
                                    conv_code(m, 32, 32, 2, false),
                                    conv_code(m, 32, 32, 2, true),
                                    other_code(FAC_NV_LEG_DEPTHWISE, t, 3, false),
                                    other_code(FAC_NV_LEG_DEPTHWISE, t, 5, false),
                                    other_code(FAC_NV_LEG_POOL, t, 0, false),
                                    other_code(FAC_NV_LEG_POOL, t, 0, true) };
        for (int k = 0; k < 8; k++)
            write_kernel(kinds[i].name, k, &all[k], 1, t == FAC_F32 ? FAC_NONE : t);
        write_kernel(kinds[i].name, 8, all, 8, t == FAC_F32 ? FAC_NONE : t);
    }
}

/* On a device that is not there. */
static void offers_are_made(void **state) {
    static const struct {
        const fac_solver *solver;
        const char *problem;
    } all[] = {
        { &fac_cl_conv_relay,
          "conv2d(f32[1,256,14,14], f32[256,256,3,3], f32[256]) pad=1,1,1,1 {relu}" },
        { &fac_cl_conv_relay, "conv2d(f32[1,64,56,56], f32[256,64,1,1], f32[256], "
                              "f32[1,256,56,56]) {add(_, x1) relu}" },
        { &fac_cl_conv_relay,
          "conv2d(bf16[1,16,112,112], bf16[96,16,1,1], bf16[96]) {clip(_, 0, 6)}" },
        { &fac_cl_conv_relay, "conv2d(f16[2,32,9,9], f16[32,16,5,5], -) groups=2 stride=2,2" },
        { &fac_cl_product_relay, "linear(f32[1,2048], f32[1000,2048], f32[1000])" },
        { &fac_cl_product_relay, "linear(bf16[3,1280], bf16[100,1280], -) {relu}" },
        { &fac_cl_depthwise_relay,
          "conv2d(f32[1,116,20,28], f32[116,1,3,3], f32[116]) pad=1,1,1,1 groups=116 {relu}" },
        { &fac_cl_depthwise_relay, "conv2d(bf16[2,16,30,28], bf16[16,1,5,5], bf16[16]) stride=2,2 "
                                   "groups=16 {clip(_, 0, 6)}" },
        { &fac_cl_pool_relay, "max_pool2d(f32[1,64,112,112]) kernel=3,3 stride=2,2 pad=1,1,1,1" },
        { &fac_cl_pool_relay, "avg_pool2d(f16[1,64,9,9]) kernel=3,3 stride=2,2 pad=1,1,1,1" },
        { &fac_cl_mean_relay, "mean(f32[1,512,7,7], i64{2,3})" },
        { &fac_cl_mean_relay, "mean(bf16[4,512,7,7], i64{2,3}) keep" }
    };
    static const fac_cl_path needed[] = { FAC_CL_MMA, FAC_CL_LOCAL_99, FAC_CL_RELAY };
    (void)state;
    pretended.limits = (fac_gpu_limits){
        .units = 132, .gpu = true, .group = 1024, .local = 49152, .memory = (size_t)64 << 30
    };
    for (int i = 0; i < 3; i++) pretended.paths[needed[i]] = FAC_CL_GOOD;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (pretended.borrowed = false;; pretended.borrowed = true) {
            fac_graph *g = NULL;
            fac_operand o[OPERANDS];
            fac_problem p;
            fac_offer offer = { 0 };
            OK(fac_problem_graph(all[i].problem, false, &g, &err));
            as_problem(g->last, FAC_PRECISION_HIGH, o, &p);
            for (int k = 1; k < p.nout; k++)
                p.out[k] = (fac_operand){ 0 }; /* which nothing reads */
            const bool made = fac_solver_offer(all[i].solver, &pretended.device, &p, &offer);
            fac_offer_drop(&offer);
            if (made == pretended.borrowed) fail_msg("%s: %d", all[i].problem, made);
            assert_true(!made || (offer.seconds > 0 && offer.seconds < 1e-3));
            fac_graph_free(g);
            if (pretended.borrowed) break;
        }
}

static bool can_meet(void) { return device && fac_nv_relays(fac_opencl_of(device)); }

static void solve_all(const fac_solver *s, const char *text, double tolerance, bool must) {
    enum { VARIANTS = 16 };
    fac_graph *g = NULL;
    const fac_case c = { text, -1, 1, tolerance };
    OK(fac_problem_graph(text, false, &g, &err));
    of_largest = true;
    channels_last = number(0, 1);
    for (variant = 0; variant <= VARIANTS; variant++)
        if (solve(s, g->last, &c, number(0, 3) == 0))
            print_message("%-3d %.1e  %s\n", variant, worst, text);
        else if (!variant && must)
            fail_msg("no offer: %s", text);
    fac_graph_free(g);
    variant = 0;
}

/* Windows, strides, dilations, groups, bodies, in each precision. */
static void convolutions(void **state) {
    (void)state;
    if (!can_meet()) skip();
    for (int i = 0; i < 4 * MODES; i++) {
        const mode *m = &modes[i % MODES];
        char text[512];
        if (m->precision == FAC_PRECISION_MEDIUM) continue;
        write_problem(i / MODES % 2, m, text, sizeof text);
        precision = m->precision;
        solve_all(&fac_cl_conv_relay, text, m->tolerance, true);
    }
    precision = FAC_PRECISION_HIGHEST;
    static const char large[] = "conv2d(f32[1,512,7,7], f32[512,512,3,3], f32[512], "
                                "f32[1,512,7,7]) pad=1,1,1,1 {add(_, x1) relu}";
    solve_all(&fac_cl_conv_relay, large, 3e-6, true);
    solve_all(&fac_cl_conv_relay,
              "conv2d(f32[2,64,9,7], f32[32,64,1,1], f32[32]) pad=0,0,1,1 {relu}", 3e-6, true);
    precision = FAC_PRECISION_DEFAULT;
}

static void linear_layers(void **state) {
    (void)state;
    if (!can_meet()) skip();
    for (int i = 0; i < 2 * MODES; i++) {
        const mode *m = &modes[i % MODES];
        char text[256];
        if (m->precision == FAC_PRECISION_MEDIUM) continue;
        const int in = m->channels * (int)number(1, 100), out = 4 * (int)number(1, 100),
                  rows = (int)number(1, 20);
        snprintf(text, sizeof text, "linear(%s[%d,%d], %s[%d,%d], %s[%d])%s", m->type, rows, in,
                 m->type, out, in, m->type, out, number(0, 1) ? " {relu}" : "");
        precision = m->precision;
        solve_all(&fac_cl_product_relay, text, m->tolerance, true);
    }
    precision = FAC_PRECISION_DEFAULT;
}

static void quads_of_channels(void **state) {
    static const struct {
        const char *type;
        double tolerance;
    } types[] = { { "f32", 2e-6 }, { "f16", 2e-3 }, { "bf16", 1e-2 } };
    (void)state;
    if (!can_meet()) skip();
    for (int i = 0; i < 18; i++) {
        const char *t = types[i % 3].type;
        const double tolerance = types[i % 3].tolerance;
        const int images = (int)number(1, 3), c = 4 * (int)number(1, 40), h = (int)number(6, 30),
                  w = (int)number(6, 30);
        const int r = 2 * (int)number(0, 2) + 1, s = r == 5 && number(0, 1) ? 5 : 3,
                  pad = (int)number(0, r / 2);
        const int down = (int)number(1, 2);
        char text[256];
        snprintf(text, sizeof text,
                 "conv2d(%s[%d,%d,%d,%d], %s[%d,1,%d,%d], %s[%d]) stride=%d,%d pad=%d,%d,%d,%d "
                 "groups=%d%s",
                 t, images, c, h, w, t, c, r, s, t, c, down, down, pad, pad, pad, pad, c,
                 number(0, 1) ? " {relu}" : "");
        solve_all(&fac_cl_depthwise_relay, text, tolerance, true);
        snprintf(text, sizeof text,
                 "max_pool2d(%s[%d,%d,%d,%d]) kernel=%d,%d stride=%d,%d pad=%d,%d,%d,%d", t, images,
                 c, h, w, r, s, down, down, pad, 1, pad, 1);
        first_only = true;
        solve_all(&fac_cl_pool_relay, text, tolerance, true);
        first_only = false;
        snprintf(text, sizeof text,
                 "avg_pool2d(%s[%d,%d,%d,%d]) kernel=%d,%d stride=%d,%d pad=%d,%d,%d,%d %s", t,
                 images, c, h, w, r, s, down, down, pad, 1, pad, 1,
                 number(0, 1) ? " count_include_pad" : "");
        solve_all(&fac_cl_pool_relay, text, tolerance, false);
        snprintf(text, sizeof text, "mean(%s[%d,%d,%d,%d], i64{2,3})%s", t, images, c, h, w,
                 number(0, 1) ? " keep" : "");
        solve_all(&fac_cl_mean_relay, text, tolerance, true);
    }
}

/* ---- networks ---- */

enum { CLASSES = 1000, SIDE = 96, RUNS = 20, THREADS = 3 };

static fac_graph *network(const char *name, int images) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 3);
    fac_output(
        g, "logits",
        fac_zoo_find(name)->build(fac_input(g, "x", FAC_F32, fac_shape(images, 3, SIDE, SIDE))));
    OK(fac_graph_check(g, &err));
    return g;
}

static fac_tensor *image(int images, uint64_t which) {
    fac_tensor *x;
    float *at = malloc((size_t)images * 3 * SIDE * SIDE * sizeof *at);
    for (int i = 0; i < images * 3 * SIDE * SIDE; i++)
        at[i] = (float)fac_random_bits(which, (uint64_t)i, 0) * 0x1p-63f - 1;
    OK(fac_tensor_new(NULL, FAC_F32, (fac_dims){ 4, { images, 3, SIDE, SIDE } }, &x, &err));
    OK(fac_tensor_write(x, at, (size_t)images * 3 * SIDE * SIDE * sizeof *at, &err));
    free(at);
    return x;
}

static void answer(fac_program *p, fac_tensor *x, int images, float *to) {
    fac_tensor *y = NULL;
    fac_error own = { 0 };
    if (fac_program_run(p, &x, &y, &own) ||
        fac_tensor_read(y, to, (size_t)images * CLASSES * sizeof *to, &own))
        fail_msg("%s", own.text);
    fac_tensor_free(y);
}

static int relayed(fac_program *p) {
    static fac_step_stat steps[512];
    int n = 0;
    const size_t all = fac_program_steps(p, steps, 512);
    for (size_t i = 0; i < all && i < 512; i++) n += strstr(steps[i].solver, "/relay") != NULL;
    return n;
}

/* Its own image, again and again, has the same answer, bit for bit, whatever other threads do with
 * the program. */
typedef struct asker {
    fac_program *p;
    fac_tensor *x;
    int images;
    bool same;
    float first[4 * CLASSES];
} asker;
static void *ask(void *arg) {
    asker *a = arg;
    static _Thread_local float again[4 * CLASSES];
    a->same = true;
    for (int i = 0; i < RUNS; i++) {
        answer(a->p, a->x, a->images, i ? again : a->first);
        a->same &= !i || !memcmp(again, a->first, (size_t)a->images * CLASSES * sizeof *again);
    }
    return NULL;
}

static void networks(void **state) {
    static const struct {
        const char *name;
        int images, least;
    } all[] = { { "resnet18", 1, 8 },
                { "mobilenet_v2", 1, 40 },
                { "googlenet", 1, 40 },
                { "efficientnet_lite0", 2, 12 } };
    (void)state;
    if (!can_meet()) skip();
    fac_opencl *o = fac_opencl_of(device);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int highest = 0; highest < 2; highest++) {
            const fac_program_opts opts = { .precision = highest ? FAC_PRECISION_HIGHEST
                                                                 : FAC_PRECISION_HIGH };
            static float want[4 * CLASSES];
            static asker a[THREADS];
            pthread_t thread[THREADS];
            fac_graph *g = network(all[i].name, all[i].images);
            fac_program *p, *other;
            OK(fac_program_new(g, device, &opts, &p, &err));
            for (int k = 0; k < THREADS; k++) {
                a[k] = (asker){ .p = p,
                                .x = image(all[i].images, (uint64_t)k),
                                .images = all[i].images };
                pthread_create(&thread[k], NULL, ask, &a[k]);
            }
            for (int k = 0; k < THREADS; k++) pthread_join(thread[k], NULL);
            print_message("%s: %d steps in relays\n", all[i].name, relayed(p));
            assert_true(relayed(p) >= all[i].least);
            fac_program_profile(p, true); /* each step alone */
            answer(p, a[0].x, all[i].images, want);
            assert_memory_equal(want, a[0].first, (size_t)all[i].images * CLASSES * sizeof *want);
            o->paths[FAC_CL_RELAY] = FAC_CL_BAD;
            OK(fac_program_new(g, device, &opts, &other, &err));
            for (int k = 0; k < THREADS; k++) {
                double top = 0, most = 0;
                answer(other, a[k].x, all[i].images, want);
                for (int j = 0; j < all[i].images * CLASSES; j++) {
                    top = fmax(top, fabs((double)want[j]));
                    most = fmax(most, fabs((double)want[j] - (double)a[k].first[j]));
                }
                print_message("%s %s: %.1e\n", all[i].name, highest ? "highest" : "high",
                              most / top);
                assert_true(a[k].same && most <= (highest ? 5e-5 : 3e-2) * top);
                fac_tensor_free(a[k].x);
            }
            assert_int_equal(relayed(other), 0);
            o->paths[FAC_CL_RELAY] = FAC_CL_GOOD;
            fac_program_free(other);
            fac_program_free(p);
            fac_graph_free(g);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_written), cmocka_unit_test(offers_are_made),
        cmocka_unit_test(convolutions),        cmocka_unit_test(linear_layers),
        cmocka_unit_test(quads_of_channels),   cmocka_unit_test(networks)
    };
    return cmocka_run_group_tests_name("nv_relay", tests, open_device, close_device);
}
