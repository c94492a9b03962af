/* Wisdom: entries, merging, the text they are kept as, and what a device makes of it. */
#include "backends/wisdom.h"
#include "base/rng.h"
#include "facula/facula.h"
#include "folder.h"
#include "shipped_wisdom.h"

static const fac_wisdom_entry first = { "cpu, a", "relu(f32[3])", "relu/x", 0, 1, 2e-6, 4e-6 };
static const fac_wisdom_entry other = { "cpu, b", "relu(f32[3])", "relu/y", 7, 2, 3e-6, 3e-6 };
static const fac_wisdom_entry third = {
    "cpu, a",   "conv2d(f32[1,2,3,3], f32[2,2,1,1]) {add(_, x1) relu} !highest !run=1,2",
    "conv2d/z", 0,
    0,          0,
    1
};

static fac_wisdom *wisdom_of(const fac_wisdom_entry *const *e, int n) {
    fac_wisdom *w;
    OK(fac_wisdom_new(&w, err));
    for (int i = 0; i < n; i++) OK(fac_wisdom_put(w, e[i], err));
    return w;
}

static void assert_entry(const fac_wisdom *w, const fac_wisdom_entry *e) {
    fac_wisdom_entry got;
    assert_true(fac_wisdom_find(w, e->device, e->problem, &got));
    assert_string_equal(got.solver, e->solver);
    assert_int_equal(got.variant, e->variant);
    assert_int_equal(got.version, e->version);
    assert_true(got.seconds - e->seconds < 1e-12 && e->seconds - got.seconds < 1e-12);
    assert_true(got.otherwise - e->otherwise < 1e-12 && e->otherwise - got.otherwise < 1e-12);
}

static void test_round_trip(void **state) {
    (void)state;
    const fac_wisdom_entry *const all[] = { &other, &first, &third };
    fac_wisdom *w = wisdom_of(all, 3), *back;
    OK(fac_wisdom_save(w, path_of("round"), err));
    OK(fac_wisdom_load(path_of("round"), &back, err));
    assert_int_equal(fac_wisdom_count(back), 3);
    for (int i = 0; i < 3; i++) assert_entry(back, all[i]);
    fac_wisdom_entry e;
    assert_false(fac_wisdom_find(back, "cpu", first.problem, &e));
    assert_false(fac_wisdom_find(back, first.device, "relu(f32[4])", &e));
    assert_false(fac_wisdom_find(NULL, first.device, first.problem, &e));
    fac_wisdom_free(back);
    fac_wisdom_free(w);
}

static void test_put_replaces(void **state) {
    (void)state;
    const fac_wisdom_entry *const all[] = { &first };
    fac_wisdom *w = wisdom_of(all, 1);
    fac_wisdom_entry e = first;
    e.solver = "relu/z";
    e.version = 0;
    e.seconds = 9e-6;
    OK(fac_wisdom_put(w, &e, err));
    assert_int_equal(fac_wisdom_count(w), 1);
    assert_entry(w, &e);
    for (int k = 0; k < 6; k++) { /* what could not be read back */
        fac_wisdom_entry bad = first;
        if (k == 0) bad.device = "";
        if (k == 1) bad.problem = "two\nlines";
        if (k == 2) bad.solver = "with space";
        if (k == 3) bad.variant = -1;
        if (k == 4) bad.seconds = -1;
        if (k == 5) bad.solver = NULL;
        fac_error said = { 0 };
        assert_int_equal(fac_wisdom_put(w, &bad, &said), FAC_E_ARGUMENT);
        assert_non_null(strstr(said.text, "wisdom"));
    }
    assert_int_equal(fac_wisdom_count(w), 1);
    fac_wisdom_free(w);
}

/* The higher version wins, else the larger gain; entries of other problems all stay. */
static void test_merge(void **state) {
    (void)state;
    fac_wisdom_entry newer = first, quicker = other, slower = third;
    newer.version = 5;
    newer.seconds = 1;
    newer.solver = "relu/newer";
    quicker.seconds = 1e-6;
    quicker.solver = "relu/quicker";
    slower.seconds = 1;
    slower.otherwise = 0.5;
    slower.solver = "conv2d/slower";
    const fac_wisdom_entry *const a[] = { &first, &other, &third }, *const b[] = { &newer, &quicker,
                                                                                   &slower };
    for (int turn = 0; turn < 2; turn++) {
        fac_wisdom *x = wisdom_of(turn ? b : a, 3);
        fac_wisdom *y = wisdom_of(turn ? a : b, 3);
        OK(fac_wisdom_merge(x, y, err));
        assert_int_equal(fac_wisdom_count(x), 3);
        assert_entry(x, &newer);
        assert_entry(x, &quicker);
        assert_entry(x, &third);
        fac_wisdom_free(x);
        fac_wisdom_free(y);
    }
}

static void write_file(const char *path, const char *text, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

#define TOP "facula wisdom 1\n"
#define DEVICE TOP "device cpu, a\n"
static void test_malformed(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        { "hello\n", "first line" },
        { "facula wisdom 2\n", "first line" },
        { TOP "relu 1 2 3 relu(f32[3])\n", ":2: expected a line \"device ...\"" },
        { TOP "device \nrelu 1 2 3 relu(f32[3])\n", ":3: expected a line \"device ...\"" },
        { DEVICE "relu\n", ":3: expected a solver" },
        { DEVICE "relu: 1 2 3 relu(f32[3])\n", ":3: expected a variant" },
        { DEVICE "relu:0 1 2 3 relu(f32[3])\n", ":3: expected a variant" },
        { DEVICE "relu:2x 1 2 3 relu(f32[3])\n", ":3: expected a variant" },
        { DEVICE ":2 1 2 3 relu(f32[3])\n", ":3: expected a solver" },
        { DEVICE "\n# remark\nrelu one 2 3 relu(f32[3])\n", ":5: expected the solver's version" },
        { DEVICE "relu -1 2 3 relu(f32[3])\n", ":3: expected the solver's version" },
        { DEVICE "relu 1 2\n", ":3: expected two times" },
        { DEVICE "relu 1 nan 3 relu(f32[3])\n", ":3: expected two times" },
        { DEVICE "relu 1 2 -3 relu(f32[3])\n", ":3: expected two times" },
        { DEVICE "relu 1 2 3 \n", ":3: expected a problem" }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fac_wisdom *w = NULL;
        fac_error said = { 0 };
        write_file(path_of("bad"), cases[i].text, strlen(cases[i].text));
        assert_int_equal(fac_wisdom_load(path_of("bad"), &w, &said), FAC_E_FORMAT);
        assert_null(w);
        if (!strstr(said.text, cases[i].words))
            fail_msg("\"%s\" lacks \"%s\"", said.text, cases[i].words);
        if (!strstr(said.text, "/bad")) fail_msg("\"%s\" lacks the path", said.text);
    }
    fac_wisdom *w = NULL;
    fac_error said = { 0 };
    write_file(path_of("zero"), TOP "a\0b\n", sizeof TOP "a\0b\n" - 1);
    assert_int_equal(fac_wisdom_load(path_of("zero"), &w, &said), FAC_E_FORMAT);
    assert_int_equal(fac_wisdom_load(path_of("not there"), &w, &said), FAC_E_IO);
    static const char windows[] =
        "facula wisdom 1\r\ndevice cpu, a\r\nrelu/x 1 2 4 relu(f32[3])\r\n";
    write_file(path_of("windows"), windows, sizeof windows - 1);
    OK(fac_wisdom_load(path_of("windows"), &w, err));
    assert_entry(w, &first);
    fac_wisdom_free(w);
}

/* Any bytes give wisdom or one error. */
static void test_mutated(void **state) {
    (void)state;
    enum { ROUNDS = 1500 };
    const fac_wisdom_entry *const all[] = { &other, &first, &third };
    fac_wisdom *w = wisdom_of(all, 3);
    char good[1024], text[1024];
    OK(fac_wisdom_save(w, path_of("good"), err));
    FILE *f = fopen(path_of("good"), "rb");
    const size_t n = fread(good, 1, sizeof good, f);
    fclose(f);
    fac_wisdom_free(w);
    int read = 0;
    for (uint64_t r = 0; r < ROUNDS; r++) {
        size_t size = n;
        memcpy(text, good, n);
        for (uint64_t k = 0; k < 1 + r % 3; k++) {
            const uint64_t bits = fac_random_bits(42, r, k);
            if (bits & 1)
                text[bits / 8 % size] = (char)(bits >> 32);
            else
                size = 1 + bits / 8 % n;
        }
        fac_error said = { 0 };
        write_file(path_of("mutant"), text, size);
        const fac_status status = fac_wisdom_load(path_of("mutant"), &w, &said);
        assert_true(status == FAC_OK || (status == FAC_E_FORMAT && said.text[0]));
        if (status) continue;
        read++;
        fac_wisdom_free(w);
    }
    assert_in_range(read, 1, ROUNDS - 1);
}

/* ---- devices ---- */

static fac_status open_with(const char *path, fac_error *said) {
    fac_device *d = NULL;
    fac_status status =
        fac_device_open("cpu", &(fac_device_opts){ .threads = 1, .wisdom = path }, &d, said);
    if (!status) fac_device_free(d);
    return status;
}

static void test_device_reads(void **state) {
    (void)state;
    fac_error said = { 0 };
    write_file(path_of("broken"), "nonsense", 8);
    assert_int_equal(open_with(path_of("broken"), &said), FAC_E_FORMAT);
    assert_non_null(strstr(said.text, "wisdom of the device cpu"));
    assert_int_equal(open_with(path_of("missing"), &said), FAC_E_IO);
    assert_int_equal(open_with("", &said), FAC_OK);
    setenv("FACULA_WISDOM", path_of("broken"), 1);
    assert_int_equal(open_with(NULL, &said), FAC_E_FORMAT);
    assert_int_equal(open_with("", &said), FAC_OK);
    setenv("FACULA_WISDOM", path_of("missing"), 1); /* nobody has tuned yet */
    assert_int_equal(open_with(NULL, &said), FAC_OK);
    setenv("FACULA_WISDOM", "", 1);
    assert_int_equal(open_with(NULL, &said), FAC_OK);
}

static void test_path(void **state) {
    (void)state;
    char path[64], *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    unsetenv("FACULA_WISDOM");
    setenv("XDG_DATA_HOME", "/data", 1);
    assert_true(fac_wisdom_path(path, sizeof path));
    assert_string_equal(path, "/data/facula/wisdom");
    assert_false(fac_wisdom_path(path, 10));
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", "/home/me", 1);
    assert_true(fac_wisdom_path(path, sizeof path));
    assert_string_equal(path, "/home/me/.local/share/facula/wisdom");
    unsetenv("HOME");
    assert_false(fac_wisdom_path(path, sizeof path));
    setenv("FACULA_WISDOM", "mine", 1);
    assert_true(fac_wisdom_path(path, sizeof path));
    assert_string_equal(path, "mine");
    setenv("FACULA_WISDOM", "", 1);
    assert_false(fac_wisdom_path(path, sizeof path));
    if (home) setenv("HOME", home, 1);
    free(home);
}

/* The key names what times depend on. */
static void test_key(void **state) {
    (void)state;
    fac_device *one, *two, *narrow;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &one, err));
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &two, err));
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2, .isa = "portable" }, &narrow, err));
    assert_non_null(strstr(fac_device_key(one), "cpu, "));
    assert_non_null(strstr(fac_device_key(two), "2 threads"));
    assert_non_null(strstr(fac_device_key(two), "caches "));
    assert_string_not_equal(fac_device_key(one), fac_device_key(two));
    fac_device_free(one);
    fac_device_free(two);
    fac_device_free(narrow);
}

/* Wisdom that comes with the library: by the whole key, or by some of its parts in their order. */
static void test_pick(void **state) {
    (void)state;
    static const char text[] =
        "facula wisdom 1\n\ndevice gpu, big\nrelu/x:3 1 2 4 relu(f32[3])\n# remark\n\ndevice gpu, "
        "bigger, 2\n"
        "relu/y 1 2 4 relu(f32[3])\n\ndevice gpu, big, driver 7\nrelu/z 2 2 4 relu(f32[4])";
    fac_wisdom *w = NULL;
    fac_wisdom_entry e;
    fac_error said = { 0 };
    OK(fac_wisdom_pick(text, "gpu, big, driver 7", &w, err));
    assert_int_equal(fac_wisdom_count(w), 2);
    assert_true(fac_wisdom_find(w, "gpu, big, driver 7", "relu(f32[3])", &e));
    assert_string_equal(e.solver, "relu/x");
    assert_int_equal(e.variant, 3);
    assert_true(fac_wisdom_find(w, "gpu, big, driver 7", "relu(f32[4])", &e));
    fac_wisdom_free(w);
    w = NULL;
    OK(fac_wisdom_pick(text, "gpu, bigger", &w, err)); /* the 2 is part of what was measured */
    assert_null(w);
    static const struct {
        const char *device, *key;
        bool serves;
    } rules[] = { { "gpu", "gpu, big", true },
                  { "gpu, 132 units, sm_90", "gpu, big, 132 units, 99 GB, sm_90", true },
                  { "gpu, sm_90", "gpu, big, sm_90", true },
                  { "gpu, sm_9", "gpu, big, sm_90", false },
                  { "gpu, sm_90", "gpu, big, sm_9", false },
                  { "gpu, sm_90, big", "gpu, big, sm_90", false },
                  { "sm_90", "gpu, big, sm_90", false },
                  { "gpu, big, big", "gpu, big", false },
                  { "gpu, big", "gpu", false },
                  { "", "gpu", false } };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char own[128];
        snprintf(own, sizeof own, "device %s\nrelu/x 1 2 4 relu(f32[3])\n", rules[i].device);
        OK(fac_wisdom_pick(own, rules[i].key, &w, err));
        if (!w == rules[i].serves) fail_msg("\"%s\" for \"%s\"", rules[i].device, rules[i].key);
        fac_wisdom_free(w);
        w = NULL;
    }
    static const char twice[] =
        "device gpu\nrelu/x 1 2 4 relu(f32[3])\n\ndevice gpu, big\nrelu/y 1 2 4 relu(f32[3])\n";
    OK(fac_wisdom_pick(twice, "gpu, big", &w, err));
    assert_true(fac_wisdom_find(w, "gpu, big", "relu(f32[3])", &e));
    assert_string_equal(e.solver, "relu/y");
    fac_wisdom_free(w);
    w = NULL;
    OK(fac_wisdom_pick("facula wisdom 1\n", "gpu, big", &w, err));
    assert_null(w);
    assert_int_equal(fac_wisdom_pick("device a\nnonsense\n", "a, b", &w, &said), FAC_E_FORMAT);
    assert_null(w);
}

/* What the library brings along names solvers that there are, and serves no other device than it
 * says. */
static void test_shipped(void **state) {
    (void)state;
    static const char *const foreign[] = { "cpu, avx512, 132 units, sm_90",
                                           "opencl, cpu-znver4, 2 units, 25.0 GB, driver 3.1",
                                           "opencl, Some Card, 132 units, sm_80" };
    fac_wisdom *w = NULL;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        OK(fac_wisdom_pick(fac_shipped_wisdom, foreign[i], &w, err));
        assert_null(w);
    }
    assert_memory_equal(fac_shipped_wisdom, FAC_WISDOM_HEADING "\n", sizeof FAC_WISDOM_HEADING);
    for (const char *line = fac_shipped_wisdom; (line = strstr(line, "\ndevice "));) {
        char key[256];
        line += strlen("\ndevice ");
        snprintf(key, sizeof key, "%.*s", (int)strcspn(line, "\n"), line);
        OK(fac_wisdom_pick(fac_shipped_wisdom, key, &w, err));
        assert_non_null(w);
        const fac_backend *const *b = fac_backends;
        while (*b && strncmp((*b)->name, key, strlen((*b)->name))) b++;
        for (size_t i = 0; *b && i < fac_wisdom_count(w); i++) { /* of a backend in this build */
            const fac_wisdom_entry e = fac_wisdom_at(w, i);
            const fac_solver *const *s = (*b)->solvers;
            while (*s && strcmp((*s)->name, e.solver)) s++;
            if (!*s) fail_msg("no solver %s of %s", e.solver, key);
        }
        fac_wisdom_free(w);
        w = NULL;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_put_replaces),
        cmocka_unit_test(test_merge),      cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_mutated),    cmocka_unit_test(test_device_reads),
        cmocka_unit_test(test_path),       cmocka_unit_test(test_key),
        cmocka_unit_test(test_pick),       cmocka_unit_test(test_shipped)
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
