/* conv2d_basis/mma and conv2d_codes/mma on this machine: their texts with the instructions of warps
 * done in C, against the reference: fragments, copies on their way, ends of all planes, and that
 * nothing else is written.  Needs clang; is skipped without. */
#include <stdbool.h>
#include "nv_bits_check.h"
#include "warp_emulation.h"

static char folder[] = "/tmp/facula-test-XXXXXX";

enum { PROBLEMS = 10, GUARD = 64, WORDS = 64, BUFFERS = 12, VARIANTS = 5 };
enum { X_WORDS = FAC_CC_PORTS, Q, Y };

static const char entry[] =
    "\n#ifdef CODES\n#define MORE (global const float *)emu_buffer(6), (global const float "
    "*)emu_buffer(7), (global const int *)emu_buffer(8), (global uint *)emu_buffer(9), "
    "(global uint *)emu_buffer(10)\n#else\n#define MORE (global uint *)emu_buffer(9)\n#endif\n"
    "void emu_item(void) {\n    product(*(const numbers *)emu_words(), (global const uint "
    "*)emu_buffer(0), (global const uchar *)emu_buffer(1), (global const float *)emu_buffer(2),\n"
    "            (global const float *)emu_buffer(3), (global const float *)emu_buffer(4), "
    "(global const float *)emu_buffer(5), MORE, (global float *)emu_buffer(11));\n}\n";

/* Memory with a margin of ones before and after it. */
typedef struct room {
    char *all;
    size_t bytes;
} room;
static room room_of(size_t bytes, const void *data) {
    room r = { NULL, bytes };
    assert_int_equal(posix_memalign((void **)&r.all, GUARD, bytes + 2 * GUARD), 0);
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

/* ---- tiles of weights, as nv_bits_pack.cl makes them ---- */

static uint32_t weight_word(const fac_nv_bits *s, const uint8_t *bits, int m, int64_t channel,
                            int64_t flat) {
    const int64_t taps = s->c.g.R * s->c.g.S, tap = flat / s->c.words, first = flat % s->c.words;
    const int64_t bytes = (s->c.C * taps + 7) / 8;
    const uint8_t *row = bits + (m * s->c.g.K + channel) * bytes;
    uint32_t word = 0;
    for (int64_t c = 32 * first; c < s->c.C && c < 32 * first + 32 && tap < taps; c++) {
        const int64_t at = c * taps + tap;
        word |= (uint32_t)(row[at / 8] >> at % 8 & 1) << c % 32;
    }
    return word;
}

static void pack_tiles(const fac_nv_bits *s, const uint8_t *bits, uint32_t *to) {
    const int columns = fac_nv_bits_columns(s), channels = columns / s->c.of_weights;
    for (int64_t tile = 0; tile < s->c.g.groups * s->group_tiles * s->k_tiles; tile++)
        for (int n = 0; n < columns; n++)
            for (int w = 0; w < FAC_NV_BITS_WORDS; w++) {
                const int64_t column = tile / s->k_tiles, group = column / s->group_tiles;
                const int64_t channel =
                    column % s->group_tiles * channels + n / 8 / s->c.of_weights * 8 + n % 8;
                const int64_t flat = tile % s->k_tiles * FAC_NV_BITS_WORDS + w;
                uint32_t *at = to + (tile * columns + n) * FAC_NV_BITS_WORDS;
                at[(w / 4 ^ (n / 2 & 3)) * 4 + w % 4] =
                    channel < s->c.K ? weight_word(s, bits, n / 8 % s->c.of_weights,
                                                   group * s->c.K + channel, flat)
                                     : 0;
            }
}

/* Sums of weights over taps r0 .. r1, t0 .. t1. */
static void pack_inside(const fac_nv_bits *s, const uint8_t *bits, int32_t *to) {
    const int64_t R = s->c.g.R, S = s->c.g.S;
    int64_t at = 0;
    for (int64_t down = 0; down < (R + 1) * (R + 1); down++)
        for (int64_t across = 0; across < (S + 1) * (S + 1); across++)
            for (int m = 0; m < s->c.of_weights; m++)
                for (int64_t k = 0; k < s->c.g.K; k++, at++) {
                    to[at] = 0;
                    for (int64_t r = down / (R + 1); r < down % (R + 1); r++)
                        for (int64_t t = across / (S + 1); t < across % (S + 1); t++) {
                            to[at] -= (int32_t)s->c.C;
                            for (int64_t c = 0; c < s->c.words; c++)
                                to[at] += 2 * __builtin_popcount(weight_word(
                                                  s, bits, m, k, (r * S + t) * s->c.words + c));
                        }
                }
}

/* ---- a problem ---- */

static void expect_same(const char *text, const void *got, const void *want, const fac_type *type) {
    const int64_t n = fac_dims_count(&type->dims);
    double *a = calloc((size_t)n + 1, sizeof *a), *b = calloc((size_t)n + 1, sizeof *b);
    fac_convert(FAC_F64, a, type->dtype, got, (size_t)n);
    fac_convert(FAC_F64, b, type->dtype, want, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        if (!(a[i] == b[i]))
            fail_msg("%s: element %lld is %.10g, not %.10g (seed %llu)", text, (long long)i, a[i],
                     b[i], (unsigned long long)seed);
    free(a);
    free(b);
}

static bool pose(const shape *x, int number_of) {
    char text[TEXT];
    fac_graph *g = NULL;
    fac_operand o[OPERANDS];
    fac_problem p;
    fac_nv_bits s;
    fac_text t = { 0 };
    warp_machine *run;
    write_shape(x, text);
    OK(fac_problem_graph(text, false, &g, &err));
    const fac_node *n = g->last;
    as_problem(n, FAC_PRECISION_DEFAULT, o, &p);
    const bool only = x->codes && (x->limits || number(0, 1));
    if (only) o[p.nin + 1] = (fac_operand){ 0 };
    p.variant = number_of;
    pretended.paths[FAC_CL_LOCAL_163] = FAC_CL_GOOD;
    const bool cut = fac_nv_bits_choose(&pretended, &p, &fac_nv_bits_mma, &s);
    if (!cut && !number_of) fail_msg("not cut: %s", text);
    if (cut) fac_nv_bits_text(&p, &s, &t);
    void *library = cut ? emulated_library(t.s, entry, folder, &run) : NULL;
    fac_text_free(&t);
    if (library) {
        fac_host host[OPERANDS] = { { .data = NULL } };
        room rooms[BUFFERS] = { { NULL, 0 } };
        void *buffers[BUFFERS];
        long words[WORDS] = { 0 };
        int64_t numbers[FAC_CL_NUMBERS];
        fac_cl_call c = { .number = numbers };
        for (int i = 0; i < p.nin + p.nout; i++)
            if (o[i].type.dtype != FAC_NONE)
                host[i] = (fac_host){ o[i].type,
                                      i < p.nin ? contents(o[i].type, 0, 255)
                                                : calloc(1, fac_type_bytes(&o[i].type) + 1),
                                      NULL };
        make_whole(n, host);
        OK(fac_ref_node(n, host, host + n->nin, NULL, &err));
        for (int i = 0; i < p.nin; i++)
            if (host[i].data && i != FAC_CB_BITS)
                rooms[i] = room_of(fac_type_bytes(&o[i].type), host[i].data);
        rooms[FAC_CB_BITS] = room_of(s.packed, NULL);
        pack_tiles(&s, host[FAC_CB_BITS].data, (uint32_t *)(rooms[FAC_CB_BITS].all + GUARD));
        if (s.c.sign)
            pack_inside(&s, host[FAC_CB_BITS].data,
                        (int32_t *)(rooms[FAC_CB_BITS].all + GUARD + s.inside));
        for (int k = 0; k < p.nout; k++)
            if (host[p.nin + k].data)
                rooms[x->codes ? Q + k : Y] = room_of(fac_type_bytes(&o[p.nin + k].type), NULL);
        for (int i = 0; i < BUFFERS; i++) {
            if (!rooms[i].all) rooms[i] = room_of(0, NULL);
            buffers[i] = rooms[i].all + GUARD;
        }
        fac_nv_bits_numbers(&s, &c);
        const int places = x->codes ? BUFFERS : FAC_CB_PORTS + 2;
        for (int i = 0; i < c.numbers; i++) words[places + i] = (long)numbers[i];
        const size_t groups[] = { c.range.items[0] / c.range.group[0], 1, 1 };
        assert_int_equal(run(groups, (int)c.range.group[0], words, buffers), 0);
        for (int k = 0; k < p.nout; k++) {
            if (!host[p.nin + k].data) continue;
            expect_same(text, buffers[x->codes ? Q + k : Y], host[p.nin + k].data,
                        &o[p.nin + k].type);
        }
        for (int i = 0; i < BUFFERS; i++) drop_room(&rooms[i]);
        for (int i = 0; i < p.nin + p.nout; i++) free(host[i].data);
        dlclose(library);
    }
    fac_graph_free(g);
    return !cut || library;
}

static void problems_are_exact(void **state) {
    (void)state;
    pretended.limits = (fac_gpu_limits){ .units = 108, .gpu = true, .group = 1024, .local = 49152 };
    for (int i = 0; i < PROBLEMS; i++) {
        shape x = random_shape(i % 3 > 0);
        x.coded = true;
        if (!pose(&x, i % (VARIANTS + 1))) skip();
    }
}

static int open_folder(void **state) {
    (void)state;
    seed = fresh_seed();
    return !mkdtemp(folder);
}

static int close_folder(void **state) {
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(problems_are_exact) };
    return cmocka_run_group_tests_name("nv_bits_warps", tests, open_folder, close_folder);
}
