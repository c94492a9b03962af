/* Small files, whole: what is read, what is refused, and that nothing waits forever. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "allocations.h"
#include "facula/read.h"

static char folder[64], path[128];
static const char *path_of(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *data, size_t n) {
    FILE *f = fopen(path_of(name), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void refused(const char *from, size_t most, fac_read_from how, fac_status want,
                    const char *words) {
    fac_error err = { 0 };
    char *text = (char *)1;
    assert_int_equal(fac_read_text(from, most, how, &text, NULL, &err), want);
    assert_ptr_equal(text, (char *)1);
    if (!strstr(err.text, words)) fail_msg("\"%s\" is not in \"%s\"", words, err.text);
}

static void files_are_whole(void **state) {
    (void)state;
    static const size_t sizes[] = { 0, 1, 4095, 16383, 16384, 16385, 32768, 100000 };
    char *text, *want = malloc(100000);
    size_t bytes;
    for (size_t k = 0; k < 100000; k++) want[k] = (char)(k * 7);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const size_t n = sizes[k];
        put("f", want, n);
        assert_int_equal(fac_read_text(path_of("f"), n, FAC_READ_FILE, &text, &bytes, NULL),
                         FAC_OK);
        assert_int_equal(bytes, n);
        assert_memory_equal(text, want, n);
        assert_int_equal(text[n], 0);
        fac_read_free(text);
        if (n) refused(path_of("f"), n - 1, FAC_READ_FILE, FAC_E_FORMAT, "holds more than");
    }
    free(want);
}

static void files_of_proc(void **state) {
    (void)state;
    char *text;
    size_t bytes;
    assert_int_equal(fac_read_text("/proc/self/maps", 1 << 20, FAC_READ_FILE, &text, &bytes, NULL),
                     FAC_OK);
    assert_true(bytes > 100 && strlen(text) == bytes);
    fac_read_free(text);
}

static void what_is_no_file(void **state) {
    (void)state;
    assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
    for (int how = FAC_READ_FILE; how <= FAC_READ_FILE_OR_PIPE; how++) {
        refused("/dev/zero", 100, (fac_read_from)how, FAC_E_IO, "not a regular file");
        refused(folder, 100, (fac_read_from)how, FAC_E_IO, "it is a folder");
        refused(path_of("nowhere"), 100, (fac_read_from)how, FAC_E_IO, "No such file");
    }
    refused(path_of("fifo"), 100, FAC_READ_FILE, FAC_E_IO, "not a regular file");
    refused(path_of("fifo"), 100, FAC_READ_FILE_OR_PIPE, FAC_E_IO, "nothing writes to this pipe");
    refused(NULL, 100, FAC_READ_FILE, FAC_E_ARGUMENT, "path is NULL");
}

/* A writer that takes its time. */
static void *write_slowly(void *self) {
    const int fd = *(int *)self;
    for (int k = 0; k < 20; k++) {
        usleep(2000);
        assert_int_equal(write(fd, "0123456789", 10), 10);
    }
    close(fd);
    return NULL;
}

static void pipes_to_their_end(void **state) {
    (void)state;
    for (int most = 199; most <= 200; most++) {
        int ends[2];
        pthread_t thread;
        char name[64], *text = NULL;
        size_t bytes;
        assert_int_equal(pipe(ends), 0);
        snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
        assert_int_equal(pthread_create(&thread, NULL, write_slowly, &ends[1]), 0);
        if (most < 200)
            refused(name, 199, FAC_READ_FILE_OR_PIPE, FAC_E_FORMAT, "holds more than 199 bytes");
        else {
            assert_int_equal(fac_read_text(name, 200, FAC_READ_FILE_OR_PIPE, &text, &bytes, NULL),
                             FAC_OK);
            assert_int_equal(bytes, 200);
            assert_memory_equal(text + 190, "0123456789", 11);
            fac_read_free(text);
        }
        pthread_join(thread, NULL);
        close(ends[0]);
    }
}

static void note(int sig) { (void)sig; }

/* A pipe that stays open and empty. */
static void a_signal_ends_the_waiting(void **state) {
    (void)state;
    int ends[2];
    char name[64];
    struct sigaction a = { .sa_handler = note, .sa_flags = SA_RESTART };
    assert_int_equal(pipe(ends), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    sigemptyset(&a.sa_mask);
    sigaction(SIGALRM, &a, NULL);
    ualarm(50000, 50000);
    refused(name, 100, FAC_READ_FILE_OR_PIPE, FAC_E_IO, "Interrupted");
    ualarm(0, 0);
    close(ends[0]);
    close(ends[1]);
}

static void without_memory(void **state) {
    (void)state;
    static char large[40000];
    char name[64];
    int ends[2];
    memset(large, 'x', sizeof large);
    put("large", large, sizeof large);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], large, sizeof large), sizeof large);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    allocations_left = 0;
    refused(path_of("large"), 1 << 20, FAC_READ_FILE, FAC_E_NOMEM, "no memory to read it");
    allocations_left = 1; /* of a pipe, the first guess is too small */
    refused(name, 1 << 20, FAC_READ_FILE_OR_PIPE, FAC_E_NOMEM, "no memory to read it");
    allocations_left = -1;
    close(ends[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_whole),           cmocka_unit_test(files_of_proc),
        cmocka_unit_test(what_is_no_file),           cmocka_unit_test(pipes_to_their_end),
        cmocka_unit_test(a_signal_ends_the_waiting), cmocka_unit_test(without_memory)
    };
    snprintf(folder, sizeof folder, "/tmp/facula-read-%d", (int)getpid());
    if (mkdir(folder, 0700)) return 2;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (const char *const *name = (const char *const[]){ "f", "fifo", "large", NULL }; *name;
         name++)
        unlink(path_of(*name));
    rmdir(folder);
    return failed;
}
