/* Compiled programs of an OpenCL device: errors of compilers, builds in threads, the cache on disk
 * with every kind of damage.  Skipped where no driver is. */
#include "opencl_device_check.h"

/* ---- compiled programs ---- */

static const char twice[] = "kernel void twice(global int *x) { x[get_global_id(0)] *= 2; }";

static void run_twice(cl_program p) {
    fac_opencl *o = fac_opencl_of(device);
    cl_int code;
    int x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    fac_cl_block *b;
    OK(fac_cl_take(o, sizeof x, &b, &err));
    fac_span at = { b, 0 };
    cl_mem buffer = fac_cl_buffer(at);
    assert_int_equal(fac_cl_at(at), 0);
    OK(device->backend->write(device, at, x, sizeof x, &err));
    cl_kernel k = o->cl.CreateKernel(p, "twice", &code);
    assert_int_equal(code, 0);
    assert_int_equal(o->cl.SetKernelArg(k, 0, sizeof buffer, &buffer), 0);
    assert_int_equal(
        o->cl.EnqueueNDRangeKernel(o->queue, k, 1, NULL, &(size_t){ 8 }, NULL, 0, NULL, NULL), 0);
    OK(device->backend->read(device, at, x, sizeof x, &err));
    for (int i = 0; i < 8; i++) assert_int_equal(x[i], 2 * (i + 1));
    o->cl.ReleaseKernel(k);
    fac_cl_give(o, b);
}

static fac_cl_build *built(const char *source, const char *options) {
    fac_opencl *o = fac_opencl_of(device);
    fac_cl_build *b = NULL;
    OK(fac_cl_build_get(o, source, options, &b, &err));
    OK(fac_cl_build_wait(o, b, &err));
    return b;
}

/* The same text once a device; another device finds it on disk. */
static void programs_are_kept(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_opencl *o = fac_opencl_of(device);
    const size_t compiled = o->builds.compiled;
    fac_cl_build *one = built(twice, ""), *same = built(twice, ""), *other = built(twice, "-DX=1");
    assert_ptr_equal(one, same);
    assert_ptr_not_equal(one, other);
    assert_int_equal(o->builds.compiled, compiled + 2);
    assert_int_equal(entries(), 2);
    run_twice(one->program);
    fac_cl_build_put(o, one);
    fac_cl_build_put(o, same);
    fac_cl_build_put(o, other);

    fac_device *again = NULL;
    fac_cl_build *b = NULL;
    OK(fac_device_open(fac_device_name(device), NULL, &again, &err));
    OK(fac_cl_build_get(fac_opencl_of(again), twice, "", &b, &err));
    OK(fac_cl_build_wait(fac_opencl_of(again), b, &err));
    assert_int_equal(fac_opencl_of(again)->builds.compiled, 0);
    assert_int_equal(fac_opencl_of(again)->builds.found, 1);
    fac_cl_build_put(fac_opencl_of(again), b);
    fac_device_free(again);
}

/* What PoCL compiles by options of its environment is another program. */
static void options_of_the_environment_count(void **state) {
    (void)state;
    NEEDS_DEVICE();
    static const char name[] = "POCL_EXTRA_BUILD_FLAGS";
    const fac_opencl *o = fac_opencl_of(device);
    const char *was = getenv(name);
    char *before = was ? strdup(was) : NULL;
    unsetenv(name);
    const fac_hash none = fac_cl_program_key(o, twice, "");
    setenv(name, "-cl-opt-disable", 1);
    const fac_hash slow = fac_cl_program_key(o, twice, "");
    assert_false(fac_hash_equal(none, slow));
    if (before) setenv(name, before, 1);
    if (!before) unsetenv(name);
    free(before);
}

static void compilers_errors_are_told(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_opencl *o = fac_opencl_of(device);
    fac_cl_build *bad = NULL;
    const int before = entries();
    OK(fac_cl_build_get(o, "kernel void k(global int *x) { x[0] = unheard_of; }", "", &bad, &err));
    assert_int_equal(fac_cl_builds_settle(o, &err), FAC_E_DEVICE);
    assert_non_null(strstr(err.text, "unheard_of"));
    OK(fac_cl_builds_settle(o, &err)); /* told once */
    assert_int_equal(fac_cl_build_wait(o, bad, &err), FAC_E_DEVICE);
    fac_cl_build_put(o, bad);
    assert_int_equal(entries(), before);
    assert_int_equal(fac_device_sync(device, &err), FAC_OK);
}

/* Many at once, each twice: threads compile, nothing is lost. */
static void programs_are_built_by_threads(void **state) {
    (void)state;
    NEEDS_DEVICE();
    enum { MANY = 12 };
    fac_device *d = NULL;
    OK(fac_device_open(fac_device_name(device), &(fac_device_opts){ .threads = 4 }, &d, &err));
    fac_opencl *o = fac_opencl_of(d);
    fac_cl_build *b[2 * MANY] = { NULL };
    char option[32];
    for (int i = 0; i < 2 * MANY; i++) {
        snprintf(option, sizeof option, "-DN=%d", i % MANY);
        OK(fac_cl_build_get(o, twice, option, &b[i], &err));
    }
    OK(fac_cl_builds_settle(o, &err));
    assert_int_equal(o->builds.compiled, MANY);
    for (int i = 0; i < 2 * MANY; i++) {
        if (i < MANY) assert_ptr_equal(b[i], b[i + MANY]);
        assert_non_null(b[i]->program);
        fac_cl_build_put(o, b[i]);
    }
    fac_device_free(d);
}

/* Torn, foreign and changed entries are as good as none. */
static void damaged_entries_are_not_there(void **state) {
    (void)state;
    const fac_hash key = { 1, 2 }, other = { 1, 3 };
    const char text[] = "hello, I am a compiled program";
    char path[128], whole[256];
    size_t n = 0;
    fac_cl_cache_put(key, text, sizeof text);
    char *got = fac_cl_cache_get(key, &n);
    assert_non_null(got);
    assert_true(n == sizeof text && !memcmp(got, text, n));
    fac_release(got);
    assert_null(fac_cl_cache_get(other, &n));
    snprintf(path, sizeof path, "%s/%016x%016x.bin", folder, 1, 2);
    FILE *f = fopen(path, "r");
    size_t size = fread(whole, 1, sizeof whole, f);
    fclose(f);
    for (size_t i = 0; i < size; i++) {
        char was = whole[i];
        whole[i] = (char)(was ^ 1);
        f = fopen(path, "w");
        fwrite(whole, 1, size, f);
        fclose(f);
        assert_null(fac_cl_cache_get(key, &n));
        whole[i] = was;
        f = fopen(path, "w");
        fwrite(whole, 1, i, f);
        fclose(f);
        assert_null(fac_cl_cache_get(key, &n));
    }
    fac_cl_cache_put(key, text, sizeof text);
    got = fac_cl_cache_get(key, &n);
    assert_non_null(got);
    fac_release(got);
    unlink(path);
}

/* A process that is killed while it writes leaves whole entries or none; the next one writes them
 * again. */
static void killed_writers_leave_no_damage(void **state) {
    (void)state;
    enum { BYTES = 300000, KEYS = 4 };
    unsigned char *data = malloc(BYTES);
    size_t n = 0;
    for (int round = 0; round < 12; round++) {
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            for (uint64_t i = 0;; i++) {
                memset(data, (int)(i % 251), BYTES);
                fac_cl_cache_put((fac_hash){ 77, i % KEYS }, data, BYTES - 1000 * (i % 7));
            }
        usleep((useconds_t)(500 + 1700 * round));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_true(waitpid(child, NULL, 0) == child);
        for (uint64_t k = 0; k < KEYS; k++) {
            unsigned char *got = fac_cl_cache_get((fac_hash){ 77, k }, &n);
            for (size_t i = 0; got && i < n; i++) assert_int_equal(got[i], got[0]);
            fac_release(got);
        }
    }
    const struct timespec old[2] = { { 1000, 0 },
                                     { 1000, 0 } }; /* what they left goes when it is old */
    char left[160];
    snprintf(left, sizeof left, "%s/0123456789abcdef.bin.4711-0.tmp", folder);
    FILE *f = fopen(left, "w");
    fclose(f);
    assert_int_equal(utimensat(AT_FDCWD, left, old, 0), 0);
    fac_cl_cache_prune(folder, (size_t)1 << 30);
    assert_int_equal(access(left, F_OK), -1);
    memset(data, 9, BYTES);
    for (uint64_t k = 0; k < KEYS; k++) {
        fac_cl_cache_put((fac_hash){ 77, k }, data, BYTES);
        unsigned char *got = fac_cl_cache_get((fac_hash){ 77, k }, &n);
        assert_non_null(got);
        assert_true(n == BYTES && !memcmp(got, data, n));
        fac_release(got);
    }
    free(data);
}

static void the_oldest_entries_go(void **state) {
    (void)state;
    char part[160], path[256], data[1000] = { 0 };
    size_t n;
    snprintf(part, sizeof part, "%s/prune", folder);
    setenv("FACULA_CACHE", part, 1);
    for (uint64_t i = 0; i < 5; i++) {
        fac_cl_cache_put((fac_hash){ 0, i }, data, sizeof data);
        snprintf(path, sizeof path, "%s/%016x%016x.bin", part, 0, (int)i);
        const struct timespec old[2] = { { 1000 + (time_t)i, 0 }, { 1000 + (time_t)i, 0 } };
        assert_int_equal(utimensat(0, path, old, 0), 0);
    }
    fac_release(fac_cl_cache_get((fac_hash){ 0, 0 }, &n)); /* now it is the youngest */
    fac_cl_cache_prune(part, 2500);
    for (uint64_t i = 0; i < 5; i++) {
        char *got = fac_cl_cache_get((fac_hash){ 0, i }, &n);
        assert_int_equal(got != NULL, i == 0 || i == 4);
        fac_release(got);
    }
    setenv("FACULA_CACHE", "", 1);
    assert_null(fac_cl_cache_get((fac_hash){ 0, 0 }, &n));
    fac_cl_cache_put((fac_hash){ 0, 9 }, data, sizeof data);
    setenv("FACULA_CACHE", "/proc/nowhere", 1);
    fac_cl_cache_put((fac_hash){ 0, 9 }, data, sizeof data);
    assert_null(fac_cl_cache_get((fac_hash){ 0, 9 }, &n));
    setenv("FACULA_CACHE", folder, 1);
}

/* Many small ones are as much as few large ones. */
static void many_entries_are_counted(void **state) {
    (void)state;
    enum { MANY = 4500, LEFT = 4200, BYTES = 10 };
    char part[160], path[256];
    snprintf(part, sizeof part, "%s/many", folder);
    assert_int_equal(mkdir(part, 0777), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "%s/%032x.bin", part, i);
        FILE *f = fopen(path, "w");
        fprintf(f, "%0*d", BYTES, i);
        fclose(f);
    }
    fac_cl_cache_prune(part, LEFT * BYTES);
    assert_int_equal(entries_of(part), LEFT);
    fac_cl_cache_prune(part, 0);
    assert_int_equal(entries_of(part), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_kept),
        cmocka_unit_test(options_of_the_environment_count),
        cmocka_unit_test(compilers_errors_are_told),
        cmocka_unit_test(programs_are_built_by_threads),
        cmocka_unit_test(damaged_entries_are_not_there),
        cmocka_unit_test(killed_writers_leave_no_damage),
        cmocka_unit_test(the_oldest_entries_go),
        cmocka_unit_test(many_entries_are_counted),
    };
    return cmocka_run_group_tests_name("opencl cache", tests, open_device, close_device);
}
