/* src/base/file/file.h: reading, and writing that leaves the old file until the new one is whole.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "allocations.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/rng.h"

static char folder[] = "/tmp/facula-base-XXXXXX";

static const char *in_folder(const char *name) {
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}
static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
} /* fails if a test left something */

static void written_files_read_back(void **state) {
    (void)state;
    enum { N = 300000 };
    unsigned char *data = malloc(N);
    for (int i = 0; i < N; i++) data[i] = (unsigned char)(i * 7 + i / 256);
    fac_writer *w = NULL;
    fac_error err = { 0 };
    assert_int_equal(fac_writer_open(in_folder("a.bin"), &w, &err), FAC_OK);
    size_t at = 0;
    for (uint64_t k = 0; at < N; k++) {
        size_t n = fac_random_bits(3, 1, k) % (k % 5 ? 1000 : 100000);
        if (n > N - at) n = N - at;
        assert_int_equal(fac_writer_put(w, data + at, n, &err), FAC_OK);
        at += n;
    }
    assert_int_equal(access(in_folder("a.bin"), F_OK), -1); /* not there before it is complete */
    assert_int_equal(fac_writer_close(w, &err), FAC_OK);
    fac_file *f = NULL;
    assert_int_equal(fac_file_map(in_folder("a.bin"), &f, &err), FAC_OK);
    assert_int_equal(fac_file_size(f), N);
    assert_memory_equal(fac_file_data(f), data, N);
    fac_file_drop(f, 1, N - 1);    /* pages that left come back from the file */
    fac_file_drop(f, 1, SIZE_MAX); /* and what is outside is nobody's affair  */
    fac_file_drop(f, SIZE_MAX, 7);
    assert_memory_equal(fac_file_data(f), data, N);
    assert_ptr_equal(fac_file_retain(f), f);
    fac_file_free(f);
    assert_memory_equal(fac_file_data(f), data, N);
    fac_file_free(f);
    fac_file_free(NULL);
    unlink(in_folder("a.bin"));
    free(data);
}

static void a_cancelled_file_leaves_the_old_one(void **state) {
    (void)state;
    fac_writer *w = NULL;
    assert_int_equal(fac_writer_open(in_folder("b"), &w, NULL), FAC_OK);
    assert_int_equal(fac_writer_put(w, "old", 3, NULL), FAC_OK);
    assert_int_equal(fac_writer_close(w, NULL), FAC_OK);
    assert_int_equal(fac_writer_open(in_folder("b"), &w, NULL), FAC_OK);
    assert_int_equal(fac_writer_put(w, "newer", 5, NULL), FAC_OK);
    fac_writer_cancel(w);
    fac_writer_cancel(NULL);
    fac_file *f = NULL;
    assert_int_equal(fac_file_map(in_folder("b"), &f, NULL), FAC_OK);
    assert_int_equal(fac_file_size(f), 3);
    fac_file_free(f);
    unlink(in_folder("b"));
}

static void a_link_stays_a_link(void **state) {
    (void)state;
    char target[200];
    struct stat s;
    snprintf(target, sizeof target, "%s", in_folder("target"));
    fclose(fopen(target, "w"));
    assert_int_equal(symlink("target", in_folder("link")), 0);
    fac_writer *w = NULL;
    assert_int_equal(fac_writer_open(in_folder("link"), &w, NULL), FAC_OK);
    assert_int_equal(fac_writer_put(w, "abc", 3, NULL), FAC_OK);
    assert_int_equal(fac_writer_close(w, NULL), FAC_OK);
    assert_int_equal(lstat(in_folder("link"), &s), 0);
    assert_true(S_ISLNK(s.st_mode));
    assert_int_equal(stat(target, &s), 0);
    assert_int_equal(s.st_size, 3);
    unlink(in_folder("link"));
    unlink(target);
}

/* To itself, or to what is not there: neither is replaced. */
static void links_that_lead_nowhere(void **state) {
    (void)state;
    static const char *const targets[] = { "link", "missing", "missing/file" };
    for (int k = 0; k < 3; k++) {
        struct stat s;
        fac_writer *w = NULL;
        fac_error err = { 0 };
        assert_int_equal(symlink(targets[k], in_folder("link")), 0);
        assert_int_equal(fac_writer_open(in_folder("link"), &w, &err), FAC_E_IO);
        assert_non_null(strstr(err.text, in_folder("link")));
        assert_int_equal(lstat(in_folder("link"), &s), 0);
        assert_true(S_ISLNK(s.st_mode));
        unlink(in_folder("link"));
    }
}

static void devices_are_written_not_replaced(void **state) {
    (void)state;
    struct stat s;
    fac_writer *w = NULL;
    fac_error err = { 0 };
    assert_int_equal(fac_writer_open("/dev/null", &w, &err), FAC_OK);
    assert_int_equal(fac_writer_put(w, "abc", 3, &err), FAC_OK);
    assert_int_equal(fac_writer_close(w, &err), FAC_OK);
    assert_int_equal(stat("/dev/null", &s), 0);
    assert_true(S_ISCHR(s.st_mode));
    if (access("/dev/full", W_OK)) return;
    assert_int_equal(fac_writer_open("/dev/full", &w, &err), FAC_OK);
    assert_int_equal(fac_writer_put(w, "abc", 3, &err), FAC_OK);
    assert_int_equal(fac_writer_close(w, &err), FAC_E_IO);
}

static void file_errors_are_clear(void **state) {
    (void)state;
    fac_file *f = NULL;
    fac_writer *w = NULL;
    fac_error err = { 0 };
    char expected[300];
    assert_int_equal(fac_file_map(folder, &f, &err), FAC_E_IO);
    snprintf(expected, sizeof expected, "%s: is a directory", folder);
    assert_string_equal(err.text, expected);
    assert_int_equal(fac_writer_open(folder, &w, &err), FAC_E_IO);
    assert_string_equal(err.text, expected);
    assert_int_equal(fac_file_map(in_folder("none"), &f, &err), FAC_E_IO);
    snprintf(expected, sizeof expected, "%s: No such file or directory", in_folder("none"));
    assert_string_equal(err.text, expected);
    assert_int_equal(fac_file_map("/dev/null", &f, &err), FAC_E_IO);
    assert_string_equal(err.text, "/dev/null: is not a regular file");
    fclose(fopen(in_folder("empty"), "w"));
    assert_int_equal(fac_file_map(in_folder("empty"), &f, &err), FAC_E_FORMAT);
    snprintf(expected, sizeof expected, "%s: is empty", in_folder("empty"));
    assert_string_equal(err.text, expected);
    allocations_left = 0;
    assert_int_equal(fac_file_map(in_folder("empty"), &f, &err), FAC_E_NOMEM);
    assert_int_equal(fac_writer_open(in_folder("x"), &w, &err), FAC_E_NOMEM);
    assert_null(fac_file_memory("abc", 3));
    allocations_left = -1;
    unlink(in_folder("empty"));
    assert_int_equal(fac_writer_open(in_folder("no/such/folder"), &w, &err), FAC_E_IO);
    char longer[6000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(fac_writer_open(longer, &w, &err), FAC_E_IO);
    assert_null(f);
    assert_null(w);
}

static void files_in_memory(void **state) {
    (void)state;
    fac_file *f = fac_file_memory("abc", 3);
    assert_int_equal(fac_file_size(f), 3);
    assert_memory_equal(fac_file_data(f), "abc", 3);
    fac_file_free(f);
    fac_file_drop(f = fac_file_memory("abcd", 4), 0, 4);
    assert_memory_equal(fac_file_data(f), "abcd", 4);
    fac_file_free(f);
    f = fac_file_adopt(fac_alloc_aligned(5), 5);
    assert_int_equal(fac_file_size(f), 5);
    fac_file_free(f);
    assert_null(fac_file_adopt(NULL, 5));
    f = fac_file_memory(NULL, 0);
    assert_int_equal(fac_file_size(f), 0);
    fac_file_free(f);
}

/* ---- files that grow ---- */

static void read_whole(const char *path, char *to, size_t size) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    to[fread(to, 1, size - 1, f)] = 0;
    fclose(f);
}

static void files_grow(void **state) {
    (void)state;
    char text[64];
    fac_error err = { 0 };
    for (int k = 0; k < 2; k++) {
        fac_appender *a = NULL;
        assert_int_equal(fac_appender_open(in_folder("log"), &a, &err), FAC_OK);
        assert_int_equal(fac_appender_put(a, "one\n", 4, &err), FAC_OK);
        assert_int_equal(fac_appender_put(a, "two\n", 4, &err), FAC_OK);
        assert_int_equal(fac_appender_put(a, NULL, 0, &err), FAC_OK);
        assert_int_equal(fac_appender_close(a, &err), FAC_OK);
    }
    assert_int_equal(fac_appender_close(NULL, &err), FAC_OK);
    read_whole(in_folder("log"), text, sizeof text);
    assert_string_equal(text, "one\ntwo\none\ntwo\n");
    unlink(in_folder("log"));
}

static void only_regular_files_grow(void **state) {
    (void)state;
    fac_appender *a = NULL;
    fac_error err = { 0 };
    char target[220], text[64];
    snprintf(target, sizeof target, "%s", in_folder("target"));
    assert_int_equal(fac_file_write(target, "precious", 8, &err), FAC_OK);
    assert_int_equal(symlink(target, in_folder("link")), 0);
    assert_int_equal(fac_appender_open(in_folder("link"), &a, &err), FAC_E_IO);
    assert_non_null(strstr(err.text, "is a link"));
    read_whole(target, text, sizeof text);
    assert_string_equal(text, "precious");
    unlink(in_folder("link"));
    assert_int_equal(mkfifo(in_folder("link"), 0600), 0);
    assert_int_equal(fac_appender_open(in_folder("link"), &a, &err), FAC_E_IO);
    assert_non_null(strstr(err.text, "is not a regular file"));
    unlink(in_folder("link"));
    unlink(target);
    assert_int_equal(fac_appender_open("/dev/null", &a, &err), FAC_E_IO);
    assert_int_equal(fac_appender_open(folder, &a, &err), FAC_E_IO);
    assert_int_equal(fac_appender_open(in_folder("no/folder"), &a, &err), FAC_E_IO);
    allocations_left = 0;
    assert_int_equal(fac_appender_open(in_folder("x"), &a, &err), FAC_E_NOMEM);
    allocations_left = -1;
    assert_null(a);
}

/* A full disk: a process's files may grow no further than this. */
static void limit_files(rlim_t bytes) {
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void what_does_not_fit_is_not_there(void **state) {
    (void)state;
    enum { N = 100000 };
    static char data[N], text[64];
    fac_appender *a = NULL;
    fac_error err = { 0 };
    char path[220];
    snprintf(path, sizeof path, "%s", in_folder("file"));
    assert_int_equal(fac_appender_open(path, &a, &err), FAC_OK);
    assert_int_equal(fac_appender_put(a, "a whole line\n", 13, &err), FAC_OK);
    limit_files(20);
    assert_int_equal(fac_appender_put(a, "one too long\n", 13, &err), FAC_E_IO);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(fac_appender_put(a, "short\n", 6, &err), FAC_OK);
    assert_int_equal(fac_appender_close(a, &err), FAC_OK);
    assert_int_equal(fac_file_write(path, data, N, &err), FAC_E_IO);
    limit_files(RLIM_INFINITY);
    read_whole(path, text, sizeof text);
    assert_string_equal(text, "a whole line\nshort\n");
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_grow),
        cmocka_unit_test(only_regular_files_grow),
        cmocka_unit_test(what_does_not_fit_is_not_there),
        cmocka_unit_test(written_files_read_back),
        cmocka_unit_test(a_cancelled_file_leaves_the_old_one),
        cmocka_unit_test(a_link_stays_a_link),
        cmocka_unit_test(links_that_lead_nowhere),
        cmocka_unit_test(devices_are_written_not_replaced),
        cmocka_unit_test(file_errors_are_clear),
        cmocka_unit_test(files_in_memory),
    };
    return cmocka_run_group_tests_name("file", tests, make_folder, remove_folder);
}
