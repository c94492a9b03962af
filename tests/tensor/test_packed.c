/* Packed parameters on disk: the second device maps what the first one packed, and nothing that is
 * damaged or meant for other weights is ever used. */
#include <dirent.h>
#include <sys/stat.h>
#include "base/file/cache.h"
#include "base/rng.h"
#include "facula/backend.h"
#include "facula/facula.h"
#include "folder.h"

enum { IN = 512, OUT = 256 };

static char cache[200];

/* One program with weights of this seed on a new device; its result, and the bytes of packed
 * weights in its own memory. */
static size_t run(const char *where, uint64_t seed, float y[OUT]) {
    fac_device *d;
    fac_graph *g;
    fac_program *p;
    fac_tensor *x, *out = NULL;
    static float w[OUT * IN], in[IN];
    for (int i = 0; i < OUT * IN; i++)
        w[i] = (float)fac_random_uniform(seed, 1, (uint64_t)i) - 0.5f;
    for (int i = 0; i < IN; i++) in[i] = (float)(i % 7) - 3;
    OK(fac_device_open(
        "cpu", &(fac_device_opts){ .threads = 1, .wisdom = "", .packed_cache = where }, &d, err));
    OK(fac_problem_graph("matmul(f32[8,512], f32[512,256])", true, &g, err));
    OK(fac_tensor_write(fac_value_tensor(fac_graph_param(g, 0)), w, sizeof w, err));
    OK(fac_tensor_new(NULL, FAC_F32, (fac_dims){ 2, { 8, IN } }, &x, err));
    static float rows[8 * IN];
    for (int i = 0; i < 8; i++) memcpy(rows + i * IN, in, sizeof in);
    OK(fac_tensor_write(x, rows, sizeof rows, err));
    OK(fac_program_new(g, d, NULL, &p, err));
    OK(fac_program_run(p, &x, &out, err));
    memcpy(y, fac_tensor_data(out), OUT * sizeof *y);
    const size_t held = fac_device_memory(d).packed;
    fac_tensor_free(out);
    fac_tensor_free(x);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(d);
    return held;
}

/* The only file of the cache; how many there are. */
static int files(char *name) {
    int n = 0;
    DIR *d = opendir(cache);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, ".packed")) {
            if (name) snprintf(name, 512, "%s/%s", cache, e->d_name);
            n++;
        }
    if (d) closedir(d);
    return n;
}

static int fresh(void **state) {
    (void)state;
    char command[256];
    snprintf(cache, sizeof cache, "%s/deep/cache", folder);
    snprintf(command, sizeof command, "rm -rf %s/deep", folder);
    return system(command);
}

static void test_second_start_maps(void **state) {
    (void)state;
    float plain[OUT], first[OUT], second[OUT];
    assert_true(run(NULL, 1, plain) > 0);
    assert_int_equal(files(NULL), 0);
    assert_true(run(cache, 1, first) > 0);
    assert_int_equal(files(NULL), 1);
    assert_int_equal(run(cache, 1, second), 0);
    assert_int_equal(files(NULL), 1);
    assert_memory_equal(plain, first, sizeof plain);
    assert_memory_equal(plain, second, sizeof plain);
}

static void test_other_weights(void **state) {
    (void)state;
    float plain[OUT], cached[OUT];
    run(cache, 1, cached);
    run(NULL, 2, plain);
    assert_true(run(cache, 2, cached) > 0);
    assert_int_equal(files(NULL), 2);
    assert_memory_equal(plain, cached, sizeof plain);
}

/* A flipped bit anywhere, a cut, an empty file, a folder in its place: packed anew, and good again
 * for the next start. */
static void test_damage(void **state) {
    (void)state;
    float plain[OUT], cached[OUT];
    char name[512];
    struct stat s;
    run(NULL, 1, plain);
    run(cache, 1, cached);
    assert_int_equal(files(name), 1);
    assert_int_equal(stat(name, &s), 0);
    const long size = (long)s.st_size;
    const long places[] = { 0, 9, 17, 30, 45, 4096, 4096 + 65536, size - 1 };
    for (size_t k = 0; k < sizeof places / sizeof *places + 2; k++) {
        if (k < sizeof places / sizeof *places) {
            FILE *f = fopen(name, "r+b");
            assert_non_null(f);
            fseek(f, places[k], SEEK_SET);
            const int c = fgetc(f);
            fseek(f, places[k], SEEK_SET);
            fputc(c ^ 0x10, f);
            fclose(f);
        } else
            assert_int_equal(truncate(name, k % 2 ? 0 : size / 2), 0);
        assert_true(run(cache, 1, cached) > 0);
        assert_memory_equal(plain, cached, sizeof plain);
        assert_int_equal(run(cache, 1, cached), 0);
        assert_memory_equal(plain, cached, sizeof plain);
    }
}

static void test_no_folder(void **state) {
    (void)state;
    float plain[OUT], cached[OUT];
    run(NULL, 1, plain);
    assert_true(run("/proc/nowhere/at/all", 1, cached) > 0);
    assert_memory_equal(plain, cached, sizeof plain);
    char *longest = malloc(5000);
    memset(longest, 'x', 4999);
    longest[4999] = 0;
    fac_device *d = NULL;
    fac_error said = { 0 };
    const fac_device_opts opts = { .threads = 1, .packed_cache = longest };
    assert_int_equal(fac_device_open("cpu", &opts, &d, &said), FAC_E_ARGUMENT);
    free(longest);
}

/* Every bit counts, and so does the length. */
static void test_hash(void **state) {
    (void)state;
    unsigned char data[200] = { 0 };
    for (size_t n = 1; n <= sizeof data; n += 13) {
        const fac_hash whole = fac_hash_bulk(fac_hash_start(1), data, n);
        assert_false(fac_hash_equal(whole, fac_hash_bulk(fac_hash_start(1), data, n - 1)));
        assert_false(fac_hash_equal(whole, fac_hash_bulk(fac_hash_start(2), data, n)));
        for (size_t bit = 0; bit < 8 * n; bit++) {
            data[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_false(fac_hash_equal(whole, fac_hash_bulk(fac_hash_start(1), data, n)));
            data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
    }
    fac_hash id, again;
    if (fac_build_id(&id)) {
        assert_true(fac_build_id(&again));
        assert_true(fac_hash_equal(id, again));
    }
}

int main(void) {
    fac_hash id;
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup(test_second_start_maps, fresh),
                                        cmocka_unit_test_setup(test_other_weights, fresh),
                                        cmocka_unit_test_setup(test_damage, fresh),
                                        cmocka_unit_test_setup(test_no_folder, fresh),
                                        cmocka_unit_test(test_hash) };
    if (!fac_build_id(&id)) {
        puts("skipped: the linker wrote no build id");
        return 0;
    }
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
