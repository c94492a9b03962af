/* attention/warps on this machine: its texts with the instructions of warps done in C, against the
 * same in f64: every index of fragments, masks, ragged ends and places in memory.  Needs clang; is
 * skipped without. */
#include "nv_attention_check.h"
#include "warp_emulation.h"

static char folder[] = "/tmp/facula-test-XXXXXX";

enum { GUARD = 64, WORDS = 64, BUFFERS = 6 };

/* Memory with NaN before and after what is in it. */
typedef struct room {
    char *all;
    size_t bytes;
} room;
static room room_of(size_t bytes, const void *data) {
    room r = { malloc(bytes + 2 * GUARD), bytes };
    memset(r.all, 0xff, bytes + 2 * GUARD);
    if (data) memcpy(r.all + GUARD, data, bytes);
    return r;
}
static void drop_room(room *r) {
    for (size_t i = 0; i < GUARD; i++)
        assert_true((unsigned char)r->all[i] == 0xff &&
                    (unsigned char)r->all[GUARD + r->bytes + i] == 0xff);
    free(r->all);
}

static const char entry[] =
    "\nvoid emu_item(void) {\n    attention(*(const args *)emu_words(), "
    "(global const MEMORY(X) *)emu_buffer(0), (global const MEMORY(X) *)emu_buffer(1),\n"
    "              (global const MEMORY(X) *)emu_buffer(2), (global const MEMORY(M) "
    "*)emu_buffer(3),"
    "\n              (global MEMORY(X) *)emu_buffer(4), (global float *)emu_buffer(5));\n}\n";

/* false: there is no clang. */
static bool pose(const form *f, fac_precision p, int number) {
    fac_tensor *in[INPUTS] = { NULL }, *wide[INPUTS] = { NULL }, *want[RESULTS] = { NULL };
    fac_graph *g = build(f, type_of(f->type), false), *ref = build(f, FAC_F64, false);
    fac_operand x[OPERANDS] = { 0 };
    fac_nv_attention a;
    fac_nv_attention_warps_cut cut;
    fac_text t = { 0 };
    fac_problem problem = problem_of(fac_graph_output(g, 0)->node, p, x);
    assert_true(fac_nv_attention_read(&problem, FAC_NV_MASK, &problem.out[0], 0, &a));
    assert_true(fac_nv_attention_warps_cut_of(&a, number, 99 << 10, 24, &cut));
    fac_nv_attention_warps_text(&a, &cut, true, &t);
    warp_machine *run;
    void *library = emulated_library(t.s, entry, folder, &run);
    fac_text_free(&t);
    if (library) {
        fill(g, in);
        for (int i = 0; i < fac_graph_inputs(g); i++) {
            const fac_dtype to = fac_value_type(fac_graph_input(ref, i)).dtype;
            OK(fac_tensor_convert(in[i], to, &wide[i], &err));
        }
        fac_program *program = NULL;
        OK(fac_program_new(ref, cpu, &(fac_program_opts){ .solver = "ref", .no_fuse = true },
                           &program, &err));
        OK(fac_program_run(program, wide, want, &err));
        fac_program_free(program);
        room rooms[BUFFERS] = { { NULL, 0 } };
        void *buffers[BUFFERS];
        long words[WORDS] = { 0 };
        for (int i = 0; i < 3 + (f->mask != NULL); i++) {
            const fac_type type = fac_tensor_type(in[i]);
            rooms[i] = room_of(fac_type_bytes(&type), fac_tensor_data(in[i]));
        }
        if (!f->mask) rooms[3] = room_of(0, NULL);
        rooms[4] = room_of(fac_type_bytes(&problem.out[0].type), NULL);
        rooms[5] = room_of(fac_type_bytes(&problem.out[FAC_NV_LSE].type), NULL);
        for (int i = 0; i < BUFFERS; i++) buffers[i] = rooms[i].all + GUARD;
        int64_t numbers[FAC_CL_NUMBERS];
        fac_cl_call c = { .number = numbers };
        fac_nv_attention_warps_numbers(&a, &cut, &c);
        for (int i = 0; i < c.numbers; i++) words[BUFFERS + i] = (long)numbers[i];
        const size_t groups[] = { c.range.items[0] / c.range.group[0], c.range.items[1],
                                  c.range.items[2] };
        assert_int_equal(run(groups, (int)c.range.group[0], words, buffers), 0);
        for (int k = 0; k < 2; k++) {
            const fac_type type = fac_tensor_type(want[k]);
            const int64_t count = fac_dims_count(&type.dims);
            double *got = calloc((size_t)count, sizeof *got);
            fac_convert(FAC_F64, got, k ? FAC_F32 : type_of(f->type), buffers[4 + k],
                        (size_t)count);
            char how[32];
            snprintf(how, sizeof how, "variant %d", number);
            compare_exact(f, p, how, k, got, fac_tensor_data(want[k]), count,
                          type.dims.d[type.dims.n - 1]);
            free(got);
        }
        for (int i = 0; i < BUFFERS; i++) drop_room(&rooms[i]);
        dlclose(library);
    }
    for (int k = 0; k < RESULTS; k++) fac_tensor_free(want[k]);
    for (int i = 0; i < INPUTS; i++) fac_tensor_free(in[i]), fac_tensor_free(wide[i]);
    fac_graph_free(g), fac_graph_free(ref);
    return library;
}

static const form forms[] = {
    { .type = "bf16", 1, 2, 2, 64, 64, 32, 32 },
    { .type = "f32", 1, 2, 2, 64, 64, 32, 32 },
    { .type = "f16", 1, 2, 1, 37, 130, 64, 48, .flat = true },
    { .type = "f32", 2, 2, 1, 37, 130, 64, 32, .flat = true },
    { .type = "bf16", 1, 1, 1, 70, 75, 32, 64, .causal = true },
    { .type = "f32", 1, 2, 2, 40, 33, 5, 7, .causal = true },
    { .type = "f32", 4, 3, 3, 49, 49, 32, 32, .mask = "f32", .mask_dims = DIMS(1, 2, 3, 49, 49) },
    { .type = "bf16", 4, 2, 2, 49, 49, 32, 32, .mask = "bf16", .mask_dims = DIMS(2, 2, 1, 49, 49) },
    { .type = "f16", 1, 2, 2, 20, 90, 16, 16, .mask = "bool", .mask_dims = DIMS(20, 90) },
    { .type = "f32", 2, 1, 1, 9, 77, 40, 24, .mask = "bool", .mask_dims = DIMS(1, 77) },
    { .type = "bf16", 1, 2, 1, 20, 300, 64, 64, .mask = "bf16", .mask_dims = DIMS(1, 2, 20, 300) },
    { .type = "f32", 2, 1, 1, 18, 210, 64, 64, .mask = "f32", .mask_dims = DIMS(2, 1, 1, 210) },
    { .type = "f16", 2, 1, 1, 20, 1, 32, 32, .mask = "f16", .mask_dims = DIMS(2, 1, 20, 1) },
    { .type = "bf16", 1, 1, 1, 33, 200, 128, 128 },
    { .type = "f32", 1, 1, 1, 33, 100, 128, 80 },
    { .type = "f16",
      1,
      2,
      2,
      30,
      45,
      17,
      33,
      .causal = true,
      .mask = "f16",
      .mask_dims = DIMS(1, 2, 1, 45) }
};
static const fac_precision levels[] = { FAC_PRECISION_HIGH, FAC_PRECISION_MEDIUM,
                                        FAC_PRECISION_DEFAULT };

static void forms_as_f64(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int k = 0; k < (type_of(forms[i].type) == FAC_F32 ? 3 : 1); k++)
            if (!pose(&forms[i], levels[k], (int)(i + (size_t)k) % 5)) skip();
}

static int open_both(void **state) {
    (void)state;
    seed = fresh_seed();
    OK(fac_device_open("cpu", NULL, &cpu, &err));
    return !mkdtemp(folder);
}

static int close_both(void **state) {
    char command[96];
    (void)state;
    fac_device_free(cpu);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(forms_as_f64) };
    return cmocka_run_group_tests(tests, open_both, close_both);
}
