/* product/mma: on any machine its cuts and texts for cards with little and with much local memory;
 * where mma.sync works every cut on odd and even sizes in every mode, from where operands lie and
 * from images, against the reference.  FACULA_KERNELS=DIR writes the texts for scripts/check_ptx.sh
 * DIR sm_80; FACULA_ALL=1 tries all, FACULA_FORM=0 .. 4 a fifth of the problems. */
#include "nv_matmul_check.h"
#include "backends/opencl/nvidia/product/matmul.h"
#include "backends/opencl/nvidia/unit/mma.h"
#include "opencl_solvers.h"

enum { GOOD = 1, BAD = 2 };

static bool has_units(void) { return device && fac_cl_has_path(fac_opencl_of(device), FAC_CL_MMA); }

static bool pose(const char *text, fac_precision p, int number, bool gaps) {
    return pose_to(&fac_cl_matmul_mma, text, p, number, gaps);
}

static void every_cut(void **state) {
    (void)state;
    if (!has_units()) skip();
    const bool all = getenv("FACULA_ALL");
    const char *only = getenv("FACULA_FORM");
    for (int i = 0; i < PRODUCTS; i++)
        for (int k = 0; k < (i < FLOATS ? 3 : 1); k++) {
            if (only ? i % 5 != atoi(only) : !all && below(3)) continue;
            const fac_precision p = i < FLOATS ? levels[k] : FAC_PRECISION_DEFAULT;
            assert_true(pose(products[i], p, 0, false));
            for (int n = 1; n < 8 && all; n++) pose(products[i], p, n, false);
        }
}

static void random_products(void **state) {
    (void)state;
    if (!has_units()) skip();
    pose_random(&fac_cl_matmul_mma, getenv("FACULA_ALL") ? 20 : 6);
}

static void long_sums(void **state) {
    (void)state;
    if (!has_units()) skip();
    pose_long(&fac_cl_matmul_mma);
}

/* ---- without a GPU ---- */

static void cut_of(const char *text, fac_precision p, int card, int number, fac_nv_matmul *m) {
    static fac_opencl o;
    fac_graph *g = NULL;
    fac_operand x[OPERANDS] = { 0 };
    fac_gpu_product r;
    const bool before_run[2] = { false, number & 1 };
    memset(&o, 0, sizeof o);
    o.limits = (fac_gpu_limits){ .local = 49152, .group = 1024, .units = 108, .gpu = true };
    for (int k = 0; k < FAC_CL_PATHS; k++) o.paths[k] = BAD;
    o.paths[FAC_CL_LOCAL_99] = card > 0 ? GOOD : BAD;
    o.paths[FAC_CL_LOCAL_163] = card > 1 ? GOOD : BAD;
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
    const fac_mma_unit unit = fac_mma_unit_of(&o);
    if (!fac_mma_matmul_read(&unit, &r, p, before_run, number, m)) m->cut.rows = 0;
    fac_text t = { 0 };
    if (m->cut.rows) {
        const int stage = (m->cut.rows + m->cut.columns) * m->row_bytes, room[] = { 48, 99, 163 };
        assert_in_range(m->cut.stages * stage, 2 * stage, 1024 * room[card]);
        assert_true(m->q.make != FAC_NV_SPLIT && m->p.from != FAC_NV_COLUMNS &&
                    m->q.from != FAC_NV_COLUMNS);
        assert_int_equal(m->tiles % r.s.batch, 0);
        assert_true(fac_nv_matmul_text(m, false, &t));
        assert_null(strstr(t.s, FAC_NV_MARK));
        const char *folder = getenv("FACULA_KERNELS");
        static int count;
        if (folder) {
            char name[512];
            snprintf(name, sizeof name, "%s/mma_matmul_%d_%03d_%d.cl", folder, card, count++,
                     number);
            FILE *f = fopen(name, "w");
            assert_non_null(f);
            fputs("// \n", f);
            fputs(t.s, f);
            fclose(f);
        }
    }
    fac_text_free(&t);
    fac_graph_free(g);
}

static void cuts_and_texts(void **state) {
    (void)state;
    for (int card = 0; card < 3; card++)
        for (int i = 0; i < PRODUCTS; i++)
            for (int number = 0; number < 8; number++) {
                fac_nv_matmul m;
                cut_of(products[i], levels[(i + number) % 3], card, number, &m);
                assert_true(number || m.cut.rows);
            }
    fac_nv_matmul m;
    cut_of("linear(f32[16,9216], f32[4096,9216], f32[4096])", FAC_PRECISION_DEFAULT, 1, 0, &m);
    assert_true(m.swap && m.parts > 1);
    assert_int_equal(m.cut.columns, 16);
    cut_of("matmul(f32[4096,4096], f32[4096,4096])", FAC_PRECISION_HIGH, 1, 0, &m);
    assert_true(m.fours && !m.swap && m.parts == 1);
    assert_int_equal(m.p.from, FAC_NV_ROWS);
    assert_int_equal(m.q.from, FAC_NV_IMAGES);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(cuts_and_texts),
                                        cmocka_unit_test(every_cut),
                                        cmocka_unit_test(random_products),
                                        cmocka_unit_test(long_sums) };
    return cmocka_run_group_tests_name("nv_mma_matmul", tests, open_device, close_device);
}
