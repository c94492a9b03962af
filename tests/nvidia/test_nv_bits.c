/* conv2d_basis/mma and conv2d_codes/mma: on any machine the texts of their kernels (written to the
 * folder FACULA_KERNELS, for scripts/check_ptx.sh DIR sm_80); on any OpenCL device the solvers with
 * products of bits in plain OpenCL C in the place of the units, against the reference; where the
 * units are, the solvers themselves.  All numbers are whole, so results are the very same.
 * FACULA_ALL=1 tries more problems, with all variants. */
#include "nv_bits_check.h"
#include "backends/opencl/device/probe.h"
#include "backends/opencl/nvidia/unit/nvidia.h"
#include "opencl_solvers.h"

enum { PROBLEMS = 14, PLAIN_PROBLEMS = 4, ALL_PROBLEMS = 200, VARIANTS = 6, TEXTS = 48 };

/* ---- the units in plain OpenCL C ---- */

static const char plain_unit[] =
    "#define GROUP(items) __attribute__((reqd_work_group_size(items, 1, 1)))\n"
    "#define UNROLL\n"
    "#define INLINE static\n"
    "#define COPIES_END()\n"
    "#define COPIES_WAIT()\n"
    "#define AHEAD (STAGES - 1)\n"
    "#define MULTIPLIED(sum)\n"
    "#define ALL_MULTIPLIED(sum)\n"
    "#define PLACE local uchar *\n"
    "#define PLACE_OF(tiles) tiles\n"
    "static void copy_words(PLACE to, global const uint *from, bool there) {\n"
    "    for (int i = 0; i < G; i++) ((local uint *)to)[i] = there ? from[i] : 0;\n"
    "}\n"
    "static void copy_16(PLACE to, global const uchar *from) {\n"
    "    for (int i = 0; i < 16; i++) to[i] = from[i];\n"
    "}\n"
    "#define COPY_16(to, from) copy_16(to, from)\n"
    "static void read_4(uint *v, PLACE at) {\n"
    "    for (int i = 0; i < 4; i++) v[i] = ((local const uint *)at)[i];\n"
    "}\n"
    "#define READ_4(v, at) read_4(v, at)\n"
    "static uint quad_or(uint x, local uint *room) {\n"
    "    const int i = (int)get_local_id(0), first = i & ~3;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    room[i] = x;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    return room[first] | room[first + 1] | room[first + 2] | room[first + 3];\n"
    "}\n"
    "static int both(PLACE a, PLACE b, int row, int column) {\n"
    "    int sum = 0;\n"
    "    for (int c = 0; c < ROW / 16; c++) {\n"
    "        uint x[4], y[4];\n"
    "        read_4(x, a + row * ROW + (c ^ TURN(row)) * 16);\n"
    "        read_4(y, b + column * ROW + (c ^ TURN(column)) * 16);\n"
    "        for (int i = 0; i < 4; i++) sum += (int)popcount(x[i] & y[i]);\n"
    "    }\n"
    "    return sum;\n"
    "}\n"
    "static void multiply(SUMS, PLACE a, PLACE b, int item) {\n"
    "    for (int m = 0; m < MS; m++)\n"
    "        for (int n = 0; n < NS; n++)\n"
    "            for (int e = 0; e < 4; e++)\n"
    "                sum[m][n][e] += both(a, b, ROW_OF(item) + m * ROWS_M + e / 2 * 8,\n"
    "                                     COLUMN_OF(item) + 8 * n + item % 4 * 2 + e % 2);\n"
    "}\n";

static void write_plain(const fac_nv_bits *s, fac_text *to) {
    (void)s;
    fac_text_add(to, plain_unit);
}

/* As the units have them: blocks of 16 rows for a warp, of 64 for four. */
static fac_nv_bits_unit plain_of(const fac_nv_bits_unit *unit) {
    fac_nv_bits_unit u = *unit;
    u.path = FAC_CL_PATHS;
    u.write = write_plain;
    return u;
}

/* ---- tests ---- */

/* by: the solvers of both ops; those on wgmma leave some cuts to mma.sync. */
typedef struct solvers {
    const fac_solver *basis, *codes;
    bool all;
} solvers;
static const solvers on_mma = { &fac_cl_conv_basis_mma, &fac_cl_conv_codes_mma, true };
static const solvers on_wgmma = { &fac_cl_conv_basis_wgmma, &fac_cl_conv_codes_wgmma, false };

static int solve_text(const solvers *by, const char *text, bool limits, int which) {
    fac_graph *g = NULL;
    const fac_case c = { text, 0, 255, 0 };
    OK(fac_problem_graph(text, false, &g, &err));
    decide = make_whole;
    of_largest = true;
    first_only = limits || number(0, 1);
    variant = which;
    const fac_solver *s = strncmp(text, "conv2d_codes", 12) ? by->basis : by->codes;
    const bool taken = solve(s, g->last, &c, number(0, 3) == 0);
    if (by->all && !which && !taken) fail_msg("no offer: %s", text);
    variant = 0;
    fac_graph_free(g);
    return taken;
}

static void solve_all(const solvers *by, int problems) {
    const bool all = getenv("FACULA_ALL");
    int solved = 0;
    for (int i = 0; i < (all ? ALL_PROBLEMS : problems); i++) {
        const shape s = random_shape(i % 3 > 0);
        char text[TEXT];
        write_shape(&s, text);
        for (int k = 0; k <= (all ? VARIANTS : 1); k++) {
            const int which = all ? k : k * (int)number(1, VARIANTS);
            const int taken = solve_text(by, text, s.limits, which);
            if (taken) print_message("%d  %s\n", which, text);
            solved += taken;
        }
    }
    assert_true(solved >= problems / 2);
}

static bool has(fac_cl_path path) { return device && fac_cl_has_path(fac_opencl_of(device), path); }

/* What surrounds the units: everything but the instructions themselves.  Not where the units are:
 * tiles for them may have more local memory than a kernel of plain C gets there. */
static void in_plain_c(void **state) {
    (void)state;
    if (!device || has(FAC_CL_MMA_B1)) skip();
    const solvers *const kinds[] = { &on_mma, &on_wgmma };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        fac_solver basis = *kinds[k]->basis, codes = *kinds[k]->codes;
        const fac_nv_bits_unit unit = plain_of(basis.how);
        basis.how = codes.how = &unit;
        const solvers by = { &basis, &codes, kinds[k]->all };
        solve_all(&by, PLAIN_PROBLEMS);
    }
}

static void on_units(void **state) {
    (void)state;
    if (!has(FAC_CL_MMA_B1)) skip();
    solve_all(&on_mma, PROBLEMS);
    if (has(FAC_CL_WGMMA_B1)) solve_all(&on_wgmma, PROBLEMS);
}

/* Layers as they are: of whole words and whole tiles, and deep enough for several rounds; of few
 * pixels, since the reference computes each of them for every variant. */
static void layers_on_units(void **state) {
    static const struct {
        const char *text;
        bool limits;
    } layers[] = {
        { "conv2d_codes(u32[1,1,14,14,8], u8[1,256,288], f32[256], f32{1}, f32[1,256], f32[256], "
          "-, "
          "f32{2}, i32[2,256]) pad=1,1,1,1 dims=256,256,3,3",
          true },
        { "conv2d_codes(u32[1,2,7,7,8], u8[1,256,288], f32[256], -, f32[1,256]) pad=1,1,1,1 "
          "dims=256,256,3,3",
          false },
        { "conv2d_codes(u32[2,1,14,14,4], u8[2,128,144], f32[128], f32{1, 2}, f32[2,128], "
          "f32[128], "
          "-, f32{4, 8}) pad=1,1,1,1 dims=128,128,3,3 y_relu",
          false },
        { "conv2d_codes(u32[1,150,1,1,32], u8[1,1000,128], -, f32{1}, f32[1,1000]) "
          "dims=1000,1024,1,1",
          false },
        { "conv2d_basis(u32[1,3,17,17,2], u8[1,100,72], f32[100], f32{1}, f32[1,100]) pad=1,1,1,1 "
          "dims=100,64,3,3",
          false },
    };
    (void)state;
    if (!has(FAC_CL_MMA_B1)) skip();
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (int k = 0; k <= VARIANTS; k++) {
            solve_text(&on_mma, layers[i].text, layers[i].limits, k);
            if (has(FAC_CL_WGMMA_B1)) solve_text(&on_wgmma, layers[i].text, layers[i].limits, k);
        }
}

static const struct {
    const char *name;
    bool l99, l163;
    size_t local;
    const fac_nv_bits_unit *unit;
} cards[] = { { "48k", false, false, 49152, &fac_nv_bits_mma },
              { "sm_86", true, false, 101376, &fac_nv_bits_mma },
              { "sm_80", true, true, 166912, &fac_nv_bits_mma },
              { "sm_90a", true, true, 166912, &fac_nv_bits_wgmma } };
enum { CARDS = sizeof cards / sizeof *cards };

static void pretend(int card) {
    pretended.limits = (fac_gpu_limits){ .units = 108, .gpu = true, .group = 1024, .local = 49152 };
    for (int k = 0; k < FAC_CL_PATHS; k++) pretended.paths[k] = FAC_CL_BAD;
    pretended.paths[FAC_CL_MMA_B1] = FAC_CL_GOOD;
    pretended.paths[FAC_CL_LOCAL_99] = cards[card].l99 ? FAC_CL_GOOD : FAC_CL_BAD;
    pretended.paths[FAC_CL_LOCAL_163] = cards[card].l163 ? FAC_CL_GOOD : FAC_CL_BAD;
}

static void keep(const char *card, int number_of, int k, const fac_text *t) {
    const char *folder = getenv("FACULA_KERNELS");
    char path[512];
    if (!folder) return;
    snprintf(path, sizeof path, "%s/bits_%s_%d_%d.cl", folder, card, number_of, k);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "// \n%s", t->s);
    fclose(f);
}

/* Operands that are slices begin anywhere, but not those that are read several numbers at once. */
static void begin_anywhere(fac_problem *p) {
    for (int i = 0; i < p->nin; i++) p->in[i].layout.offset = number(0, 9);
}
static void check_beginnings(const fac_problem *p, const fac_nv_bits *s) {
    static const int pairs[] = { FAC_CB_B, FAC_CB_W_BASIS, FAC_CB_SCALE, FAC_CB_LIMITS };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        if (pairs[k] < p->nin && p->in[pairs[k]].type.dtype != FAC_NONE && s->c.K % 2 == 0)
            assert_int_equal(p->in[pairs[k]].layout.offset % 2, 0);
    if (s->c.x_codes) assert_int_equal(p->in[FAC_CB_X].layout.offset % s->t.copied, 0);
}

/* Every cut keeps within local memory, has whole warps and words, and a text. */
static void kernels_are_written(void **state) {
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        const int card = i % CARDS;
        const bool wgmma = cards[card].unit == &fac_nv_bits_wgmma;
        const shape x = random_shape(i % 3 > 0);
        char text[TEXT];
        fac_graph *g = NULL;
        fac_operand o[OPERANDS];
        fac_problem p;
        int written = 0;
        pretend(card);
        write_shape(&x, text);
        OK(fac_problem_graph(text, false, &g, &err));
        for (int k = 0; k <= VARIANTS; k++) {
            fac_nv_bits s;
            fac_text t = { 0 };
            as_problem(g->last, FAC_PRECISION_DEFAULT, o, &p);
            if (x.limits) o[p.nin + 1] = (fac_operand){ 0 };
            p.variant = k;
            begin_anywhere(&p);
            if (!fac_nv_bits_choose(&pretended, &p, cards[card].unit, &s)) continue;
            check_beginnings(&p, &s);
            const int rows = fac_nv_bits_rows(&s), columns = fac_nv_bits_columns(&s);
            assert_true(s.t.stages * (rows + columns) * FAC_NV_BITS_ROW +
                            16 * fac_nv_bits_items(&s) + 256 <=
                        (int)cards[card].local);
            assert_true(s.t.ms % s.c.planes == 0 && s.t.ns % (2 * s.c.of_weights) == 0);
            assert_true(columns / s.c.of_weights % 32 == 0 && fac_nv_bits_items(&s) <= 256);
            fac_nv_bits_text(&p, &s, &t);
            assert_false(t.failed);
            assert_true(!strstr(t.s, FAC_NV_MARK) == !wgmma); /* what only sm_90a has */
            keep(cards[card].name, i, k, &t);
            fac_text_free(&t);
            written++;
        }
        if (!written && !wgmma) fail_msg("not cut: %s", text);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(kernels_are_written),
                                        cmocka_unit_test(in_plain_c), cmocka_unit_test(on_units),
                                        cmocka_unit_test(layers_on_units) };
    return cmocka_run_group_tests_name("nv_bits", tests, open_device, close_device);
}
