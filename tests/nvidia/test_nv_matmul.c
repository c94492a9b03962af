/* product/wgmma: every cut of it on odd and even sizes, in every mode, from where operands lie and
 * from images, against the reference; without a GPU its texts and cuts.  FACULA_KERNELS=DIR writes
 * the texts for scripts/check_ptx.sh. */
#include "nv_matmul_check.h"
#include "backends/opencl/nvidia/product/matmul.h"
#include "opencl_solvers.h"

static bool has_units(void) {
    return device && fac_cl_has_path(fac_opencl_of(device), FAC_CL_WGMMA);
}

static bool pose(const char *text, fac_precision p, int number, bool gaps) {
    return pose_to(&fac_cl_matmul_wgmma, text, p, number, gaps);
}

/* Every cut that the problem has, or, since each has kernels of its own to compile, the one by
 * estimates and another. */
static void pose_all(const char *text, fac_precision p, bool gaps) {
    int n = 1;
    assert_true(pose(text, p, 0, gaps));
    if (getenv("FACULA_ALL")) {
        while (n < 9 && pose(text, p, n, gaps)) n++;
        assert_in_range(n, 3, 9);
    } else
        while (!pose(text, p, 1 + below(8), gaps)) continue;
}

static void every_cut(void **state) {
    (void)state;
    if (!has_units()) skip();
    for (int i = 0; i < PRODUCTS; i++)
        for (int k = 0; k < (i < FLOATS ? 3 : 1); k++)
            if (getenv("FACULA_ALL") || (i < FLOATS ? i % 3 == k : below(2)))
                pose_all(products[i], i < FLOATS ? levels[k] : FAC_PRECISION_DEFAULT, false);
}

static void random_products(void **state) {
    (void)state;
    if (!has_units()) skip();
    pose_random(&fac_cl_matmul_wgmma, getenv("FACULA_ALL") ? 100 : 6);
}

static void long_sums(void **state) {
    (void)state;
    if (!has_units()) skip();
    pose_long(&fac_cl_matmul_wgmma);
}

/* ---- without a GPU ---- */

static void open_fake(fac_opencl *o) {
    memset(o, 0, sizeof *o);
    o->limits = (fac_gpu_limits){ .local = 49152, .group = 1024, .units = 132, .gpu = true };
}

/* The cut of a product that an H200 would get; the text of every kernel of it. */
static fac_nv_matmul cut_of(const char *text, fac_precision p, bool weights, int number) {
    fac_graph *g = NULL;
    fac_opencl o;
    fac_operand x[OPERANDS] = { 0 };
    fac_gpu_product r;
    fac_nv_matmul m;
    const bool before_run[2] = { false, weights };
    open_fake(&o);
    if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s: %s", text, err.text);
    fac_node *n = g->last;
    fac_problem problem = {
        .node = n, .precision = p, .nin = n->nin, .nout = n->nout, .in = x, .out = x + n->nin
    };
    for (int i = 0; i < n->nin + n->nout; i++) {
        const fac_value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
        if (v) x[i] = (fac_operand){ v->type, fac_layout_plain(&v->type.dims), FAC_RUN, v->known };
    }
    assert_true(fac_cl_product_read(&o, &problem, &r));
    if (!fac_nv_matmul_read(&o.limits, &r, p, before_run, number, &m)) m.cut.rows = 0;
    const char *folder = getenv("FACULA_KERNELS");
    static int count;
    for (int k = 0; k < 3 && m.cut.rows; k++) {
        fac_text t = { 0 };
        const fac_nv_side *s = k == 1 ? &m.p : &m.q;
        /* a group that packed rows of two tiles would write both to one */
        assert_int_equal(s->tile % fac_nv_matmul_lines(s->tile), 0);
        if (k && s->from != FAC_NV_IMAGES) continue;
        assert_true(k ? fac_nv_matmul_pack_text(&m, s, &t) : fac_nv_matmul_text(&m, false, &t));
        if (folder) {
            char name[512];
            snprintf(name, sizeof name, "%s/matmul_%03d_%s.cl", folder, count,
                     k ? "pack" : "product");
            FILE *f = fopen(name, "w");
            assert_non_null(f);
            fputs("// -cl-nv-maxrregcount=168\n", f); /* 384 items share 64 Ki */
            fputs(t.s, f);
            fclose(f);
        }
        fac_text_free(&t);
    }
    count++;
    fac_graph_free(g);
    return m;
}

static void cuts(void **state) {
    (void)state;
    fac_nv_matmul m = cut_of("matmul(f32[4096,4096], f32[4096,4096])", FAC_PRECISION_HIGH, true, 0);
    assert_int_equal(m.mode, FAC_NV_TF32);
    assert_int_equal(m.p.from, FAC_NV_ROWS);
    assert_int_equal(m.q.from, FAC_NV_IMAGES);
    assert_true(m.q.packed && m.fours && !m.swap);
    assert_int_equal(m.q.make, FAC_NV_ROUNDED);
    assert_int_equal(m.parts, 1);
    assert_int_equal(m.work, 0);
    assert_int_equal(m.q.bytes, 4096 * 4096 * 4);
    m = cut_of("matmul(bf16[512,256], bf16[256,768])", FAC_PRECISION_DEFAULT, false, 0);
    assert_int_equal(m.p.from, FAC_NV_ROWS);
    assert_int_equal(m.q.from, FAC_NV_COLUMNS);
    assert_true(m.fours && !m.work);
    /* terms that do not come in chunks must be copied into images; so must terms that are no
     * neighbours of f32 */
    m = cut_of("matmul(bf16[512,255], bf16[255,768])", FAC_PRECISION_DEFAULT, false, 0);
    assert_int_equal(m.p.from, FAC_NV_IMAGES);
    assert_int_equal(m.q.from, FAC_NV_COLUMNS);
    m = cut_of("linear(f32[512,256], f32[768,256])", FAC_PRECISION_DEFAULT, false, 0);
    assert_int_equal(m.p.from, FAC_NV_ROWS);
    assert_int_equal(m.q.from, FAC_NV_ROWS);
    m = cut_of("matmul(f32[512,256], f32[256,768])", FAC_PRECISION_DEFAULT, false, 0);
    assert_int_equal(m.p.from, FAC_NV_ROWS);
    assert_int_equal(m.q.make, FAC_NV_SPLIT);
    assert_true(m.work >= m.q.bytes);
    m = cut_of("matmul(f32[50,200], f32[200,264])", FAC_PRECISION_DEFAULT, false, 0);
    assert_true(m.swap);
    assert_int_equal(m.p.from, FAC_NV_COLUMNS);
    /* few rows: weights are the rows of the tile, and the sum is split until the device is full */
    m = cut_of("linear(f32[16,9216], f32[4096,9216], f32[4096])", FAC_PRECISION_DEFAULT, true, 0);
    assert_true(m.swap && m.parts > 1 && !m.fours);
    assert_int_equal(m.p.make, FAC_NV_FLOATS);
    assert_int_equal(m.cut.columns, 16);
    assert_int_equal(m.p.input, 1);
    /* an odd number of columns is stored one by one */
    m = cut_of("linear(f32[128,768], f32[50257,768])", FAC_PRECISION_HIGH, true, 0);
    assert_false(m.fours);
    m = cut_of("matmul(f32[4,0], f32[0,4])", FAC_PRECISION_HIGH, false, 0);
    assert_int_equal(m.cut.rows, 0);
}

/* All texts, for the assembler. */
static void texts(void **state) {
    static const char *const problems[] = { "linear(f32[256,512], f32[512,512], f32[512]) {relu}",
                                            "linear(f32[16,9216], f32[4096,9216], f32[4096])",
                                            "matmul(f32[256,77], f32[77,131])",
                                            "gemm(f32[512,256], f32[512,512], f32[512]) trans_a",
                                            "linear(f32[128,4096], f32[256,4096], f32[256])" };
    static const char *const halves[] = {
        "linear(bf16[256,512], bf16[512,512], bf16[512], bf16[256,512]) {add(_, x1) relu}",
        "matmul(f16[256,512], f16[512,512])", "gemm(f16[256,264], f16[256,512]) trans_a"
    };
    (void)state;
    for (int number = 1; number < 12; number++) {
        for (int i = 0; i < 15; i++) cut_of(problems[i % 5], levels[i / 5], i & 1, number);
        for (int i = 0; i < 3; i++) cut_of(halves[i], FAC_PRECISION_DEFAULT, i & 1, number);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(cuts), cmocka_unit_test(texts),
                                        cmocka_unit_test(every_cut),
                                        cmocka_unit_test(random_products),
                                        cmocka_unit_test(long_sums) };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
