/* attention/wgmma, attention/warps and attention_grad/wgmma within whole programs: heads of all
 * sizes, ragged lengths, causal, masks, grouped queries, every mode, against the same in f64 on the
 * cpu; without a GPU their texts.  FACULA_KERNELS=DIR writes these for scripts/check_ptx.sh. */
#include "nv_attention_check.h"
#include "backends/opencl/nvidia/unit/mma.h"

static int below(int n) { return (int)(fac_random_bits(seed, ++stream, 0) % (uint64_t)n); }

static const char wgmma[] = "attention/wgmma", warps[] = "attention/warps";

static bool has_units(const char *solver) {
    return device &&
           fac_cl_has_path(fac_opencl_of(device), solver == wgmma ? FAC_CL_WGMMA : FAC_CL_MMA);
}

static void compare_results(const form *f, fac_precision p, const char *how, int k, fac_tensor *got,
                            fac_tensor *want) {
    fac_tensor *as = NULL;
    OK(fac_tensor_convert(got, FAC_F64, &as, &err));
    const fac_type t = fac_tensor_type(want);
    compare_exact(f, p, how, k, fac_tensor_data(as), fac_tensor_data(want), fac_dims_count(&t.dims),
                  t.dims.d[t.dims.n - 1]);
    fac_tensor_free(as);
}

/* By this solver, without gradients by attention/warps.  Else both solvers must take part; split
 * numbers are for the first one only. */
static void pose(const form *f, fac_precision p, const char *solver) {
    fac_tensor *in[INPUTS] = { NULL }, *wide[INPUTS] = { NULL }, *got[RESULTS] = { NULL },
               *want[RESULTS] = { NULL };
    const bool grads = !strcmp(solver, wgmma);
    const int results = grads ? RESULTS : 2;
    fac_graph *g = build(f, type_of(f->type), grads), *ref = build(f, FAC_F64, grads);
    fac_program *program = NULL;
    fac_step_stat s[64];
    int taken = 0;
    fill(g, in);
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        const fac_dtype t = fac_value_type(fac_graph_input(ref, i)).dtype;
        OK(fac_tensor_convert(in[i], t, &wide[i], &err));
    }
    OK(fac_program_new(ref, cpu, &(fac_program_opts){ .solver = "ref", .no_fuse = true }, &program,
                       &err));
    OK(fac_program_run(program, wide, want, &err));
    fac_program_free(program);
    OK(fac_program_new(g, device, &(fac_program_opts){ .precision = p, .solver = solver }, &program,
                       &err));
    OK(fac_program_run(program, in, got, &err));
    const size_t n = fac_program_steps(program, s, 64);
    for (size_t i = 0; i < n && i < 64; i++)
        taken += !strcmp(s[i].solver, solver) || !strcmp(s[i].solver, "attention_grad/wgmma");
    for (int k = 0; k < results; k++) compare_results(f, p, solver, k, got[k], want[k]);
    fac_program_free(program);
    for (int k = 0; k < results; k++) fac_tensor_free(got[k]), fac_tensor_free(want[k]);
    for (int i = 0; i < INPUTS; i++) fac_tensor_free(in[i]), fac_tensor_free(wide[i]);
    fac_graph_free(g), fac_graph_free(ref);
    assert_int_equal(taken,
                     !grads || (type_of(f->type) == FAC_F32 && p == FAC_PRECISION_DEFAULT) ? 1 : 2);
}

static const form forms[] = {
    { .type = "bf16", 1, 2, 2, 128, 128, 64, 64 },
    { .type = "bf16", 2, 4, 2, 77, 333, 128, 128, .flat = true },
    { .type = "f16", 1, 2, 2, 300, 129, 64, 64, .causal = true },
    { .type = "f16", 1, 2, 1, 65, 257, 112, 48, .mask = "bool", .mask_dims = DIMS(65, 257) },
    { .type = "f32", 1, 2, 2, 203, 203, 64, 64, .causal = true },
    { .type = "f32", 2, 2, 2, 130, 131, 128, 128, .flat = true, .scale = 0.2 },
    { .type = "f32", 1, 2, 2, 100, 129, 80, 16, .mask = "f32", .mask_dims = DIMS(1, 2, 100, 129) },
    { .type = "f32", 2, 3, 3, 1, 1, 32, 32 },
    { .type = "bf16", 4, 8, 8, 800, 900, 128, 128, .causal = true },
    { .type = "f16", 2, 24, 12, 450, 500, 64, 64, .causal = true },
    { .type = "bf16", 2, 6, 3, 200, 1100, 40, 24, .flat = true, .causal = true },
    { .type = "bf16", 1, 1, 1, 513, 1, 128, 64 },
    { .type = "f32", 1, 1, 1, 50, 51, 5, 7, .mask = "bool", .mask_dims = DIMS(1, 51) },
    { .type = "f32", 12, 3, 3, 49, 49, 32, 32, .mask = "f32", .mask_dims = DIMS(1, 4, 3, 49, 49) },
    { .type = "bf16",
      12,
      4,
      2,
      49,
      49,
      32,
      32,
      .mask = "bf16",
      .mask_dims = DIMS(3, 4, 1, 49, 49) },
    { .type = "bf16",
      1,
      3,
      1,
      70,
      40,
      17,
      33,
      .causal = true,
      .mask = "bf16",
      .mask_dims = DIMS(1, 3, 1, 40) }
};
static const fac_precision levels[] = { FAC_PRECISION_HIGH, FAC_PRECISION_MEDIUM,
                                        FAC_PRECISION_DEFAULT };
enum { LEVELS = sizeof levels / sizeof *levels };
static int levels_of(const form *f) { return type_of(f->type) == FAC_F32 ? LEVELS : 1; }

/* Each form in one of its modes, as each has kernels of its own to compile; FACULA_ALL: in all,
 * FACULA_FORM=0 .. 15: of the forms, this one. */
static void pose_forms(const char *solver) {
    const char *chosen = getenv("FACULA_FORM");
    if (!has_units(solver)) skip();
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const int n = levels_of(&forms[i]), only = below(n);
        for (int k = 0; k < n && !(chosen && atoi(chosen) != (int)i); k++)
            if (k == only || getenv("FACULA_ALL")) pose(&forms[i], levels[k], solver);
    }
}

static void pose_random(const char *solver) {
    static const char *const types[] = { "f32", "bf16", "f16" };
    static const int sizes[] = { 64, 128, 16, 32, 96, 40, 7 };
    if (!has_units(solver)) skip();
    for (int i = 0; i < (getenv("FACULA_ALL") ? 60 : 2); i++) {
        form f = { types[below(3)],   1 + below(2),    2,
                   1 + below(2),      1 + below(400),  1 + below(400),
                   sizes[below(7)],   sizes[below(7)], .flat = below(2),
                   .causal = below(2) };
        f.mask_dims = fac_shape(f.B, 1, f.Q, f.T);
        if (below(2)) f.mask = "bool";
        pose(&f, levels[below(LEVELS)], solver);
    }
}

static void every_form(void **state) {
    (void)state;
    pose_forms(wgmma);
}
static void every_form_by_warps(void **state) {
    (void)state;
    pose_forms(warps);
}
static void random_forms(void **state) {
    (void)state;
    pose_random(wgmma);
}
static void random_forms_by_warps(void **state) {
    (void)state;
    pose_random(warps);
}

/* Two runs give the same bits. */
static void runs_are_alike(void **state) {
    static const form f = { .type = "bf16", 2, 4, 4, 500, 700, 64, 64 };
    (void)state;
    if (!has_units(wgmma)) skip();
    fac_graph *g = build(&f, FAC_BF16, true);
    fac_tensor *in[INPUTS] = { NULL }, *out[2][RESULTS] = { { NULL } }, *here[2] = { NULL };
    fac_program *p = NULL;
    fill(g, in);
    OK(fac_program_new(g, device, NULL, &p, &err));
    for (int i = 0; i < 2; i++) OK(fac_program_run(p, in, out[i], &err));
    for (int k = 0; k < RESULTS; k++) {
        for (int i = 0; i < 2; i++) OK(fac_tensor_convert(out[i][k], FAC_F64, &here[i], &err));
        const fac_type t = fac_tensor_type(here[0]);
        assert_memory_equal(fac_tensor_data(here[0]), fac_tensor_data(here[1]), fac_type_bytes(&t));
        for (int i = 0; i < 2; i++) fac_tensor_free(here[i]), fac_tensor_free(out[i][k]);
    }
    for (int i = 0; i < INPUTS; i++) fac_tensor_free(in[i]);
    fac_program_free(p);
    fac_graph_free(g);
}

/* ---- without a GPU ---- */

static void keep(const char *name, int number, const fac_text *t) {
    const char *folder = getenv("FACULA_KERNELS");
    assert_false(t->failed);
    /* a mask of truth values has no numbers to convert, in any of the texts */
    assert_true(!strstr(t->s, "#define M bool\n") == !strstr(t->s, "#define BOOLS\n"));
    if (!folder) return;
    char path[512];
    snprintf(path, sizeof path, "%s/attention_%03d_%s.cl", folder, number, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "//\n%s", t->s);
    fclose(f);
}

/* A form's texts by attention/warps, for cards with little and with much local memory. */
static void warps_texts_of(const form *f, const fac_nv_attention *a, int number) {
    static const int room[] = { 48, 99, 163 }, units[] = { 24, 84, 132 };
    const int card = number / 3 % 3, only = 1 + number / 3 % 8;
    fac_nv_attention_warps_cut cut;
    fac_text t = { 0 };
    assert_true(fac_nv_attention_warps_cut_of(a, 1, 48 << 10, 1, &cut));
    assert_false(fac_nv_attention_warps_cut_of(a, 9, 1 << 20, 1, &cut));
    if (!fac_nv_attention_warps_cut_of(a, number & 1 ? only : 0, (size_t)room[card] << 10,
                                       units[card], &cut))
        return;
    assert_in_range(cut.warps, 1, 8);
    assert_int_equal(cut.block % 16, 0);
    assert_true(cut.stages * cut.block >= f->T ? cut.ahead == cut.stages
                                               : cut.ahead == cut.stages - 1 && cut.ahead > 0);
    fac_nv_attention_warps_text(a, &cut, number & 2, &t);
    assert_null(strstr(t.s, FAC_NV_MARK));
    keep("warps", number, &t);
    fac_text_free(&t);
}

/* What is read of a problem, and every text of it. */
static void texts_of(const form *f, fac_precision p, int maps, int number) {
    static const char *const names[] = { "forward", "delta", "keys", "queries" };
    fac_graph *g = build(f, type_of(f->type), true);
    fac_operand x[OPERANDS] = { 0 };
    fac_nv_attention a;
    fac_problem problem = problem_of(fac_graph_output(g, 0)->node, p, x);
    assert_true(fac_nv_attention_read(&problem, 3, &problem.out[0], maps, &a));
    assert_true(a.B == f->B && a.H == f->H && a.G == f->G && a.Q == f->Q && a.T == f->T &&
                a.D == f->D && a.E == f->E);
    assert_int_equal(a.q.head, f->flat ? f->D : f->Q * f->D);
    assert_int_equal(a.k.row, f->flat ? f->G * f->D : f->D);
    assert_int_equal(a.d % 16, 0);
    if (!maps) warps_texts_of(f, &a, number);
    assert_int_equal(a.maps,
                     type_of(f->type) != FAC_F32 && f->D % 8 == 0 && f->E % 8 == 0 ? maps : 0);
    if (a.maps != maps) {
        fac_graph_free(g);
        return;
    }
    for (int k = FAC_NV_FORWARD; k <= (a.mode == FAC_NV_3XTF32 ? FAC_NV_FORWARD : FAC_NV_QUERIES);
         k++) {
        fac_text t = { 0 };
        const fac_nv_attention_cut cut = fac_nv_attention_cut_of(&a, k);
        fac_nv_attention_text(&a, k, &cut, k == FAC_NV_FORWARD, &t);
        keep(names[k], number, &t);
        fac_text_free(&t);
    }
    for (int transposed = 0; transposed < 2; transposed++) {
        fac_text t = { 0 };
        size_t work = 0;
        const fac_nv_images m =
            fac_nv_images_of(&a, &a.k, fac_nv_grad_tile(&a), 3, transposed, &work);
        assert_true(work == m.bytes &&
                    work >= (size_t)(a.B * a.G * 3 * m.tile * a.d * fac_nv_number(&a)));
        fac_nv_images_text(&a, &m, &t);
        keep(transposed ? "transposed" : "images", number, &t);
        fac_text_free(&t);
        if (!fac_nv_tf32(&a)) break;
    }
    fac_graph_free(g);
}

static void texts(void **state) {
    (void)state;
    int number = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int k = 0; k < levels_of(&forms[i]); k++)
            for (int maps = 0; maps < 3; maps++) texts_of(&forms[i], levels[k], maps, number++);
}

/* Whom the planner would take on a card with wgmma. */
static bool warps_are_faster(const form *f, fac_precision p) {
    enum { GOOD = 1, UNITS = 132 };
    static fac_opencl o;
    fac_graph *g = build(f, type_of(f->type), false);
    fac_operand x[OPERANDS] = { 0 };
    fac_nv_attention a, b;
    fac_nv_attention_warps_cut cut;
    fac_problem problem = problem_of(fac_graph_output(g, 0)->node, p, x);
    memset(&o, 0, sizeof o);
    o.limits = (fac_gpu_limits){ .local = 49152, .group = 1024, .units = UNITS, .gpu = true };
    for (int k = 0; k < FAC_CL_PATHS; k++) o.paths[k] = GOOD;
    assert_true(fac_nv_attention_read(&problem, FAC_NV_MASK, &problem.out[0], 0, &a));
    assert_true(fac_nv_attention_read(&problem, FAC_NV_MASK, &problem.out[0], 1, &b));
    assert_true(fac_nv_attention_warps_cut_of(&a, 0, fac_mma_unit_of(&o).local, UNITS, &cut));
    const fac_nv_attention_cut tiles = fac_nv_attention_cut_of(&b, FAC_NV_FORWARD);
    const size_t images = b.maps ? 0 : (size_t)(b.B * b.G * b.T * (b.d + b.e) * fac_nv_number(&b));
    fac_graph_free(g);
    const fac_mma_unit unit = fac_mma_unit_of(&o);
    return fac_nv_attention_warps_seconds(&unit, &a, &cut) <
           fac_nv_attention_seconds(&o.limits, &b, &tiles, images);
}

static void short_sequences_by_warps(void **state) {
    static const form few[] = { { .type = "bf16",
                                  1024,
                                  3,
                                  3,
                                  49,
                                  49,
                                  32,
                                  32,
                                  .mask = "bf16",
                                  .mask_dims = DIMS(1, 64, 3, 49, 49) },
                                { .type = "bf16", 16, 12, 12, 128, 128, 64, 64 },
                                { .type = "bf16", 1, 12, 12, 197, 197, 64, 64 },
                                { .type = "f32", 16, 12, 12, 197, 197, 64, 64 } },
                      many[] = { { .type = "bf16", 16, 12, 12, 512, 512, 64, 64 },
                                 { .type = "f16", 2, 16, 16, 2048, 2048, 128, 128, .causal = true },
                                 { .type = "f32", 8, 16, 16, 2048, 2048, 64, 64 } };
    (void)state;
    for (size_t i = 0; i < sizeof few / sizeof *few; i++)
        assert_true(warps_are_faster(&few[i], FAC_PRECISION_HIGH));
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        assert_false(warps_are_faster(&many[i], FAC_PRECISION_HIGH));
}

static int open_both(void **state) {
    OK(fac_device_open("cpu", NULL, &cpu, &err));
    return open_device(state);
}

static int close_both(void **state) {
    fac_device_free(cpu);
    return close_device(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),         cmocka_unit_test(short_sequences_by_warps),
        cmocka_unit_test(every_form),    cmocka_unit_test(every_form_by_warps),
        cmocka_unit_test(random_forms),  cmocka_unit_test(random_forms_by_warps),
        cmocka_unit_test(runs_are_alike)
    };
    return cmocka_run_group_tests(tests, open_both, close_both);
}
