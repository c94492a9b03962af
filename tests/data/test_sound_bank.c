/* Recordings in files, read by several threads at once: what is in use stays, no more than may is
 * there, and no thread waits for a recording of another. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/rng.h"
#include "data/sound/sound_bank.h"
#include "folder.h"

enum { RATE = 1000, FILES = 6, THREADS = 4, TURNS = 200 };

static int64_t size_of(int file) { return 200 + 100 * file; } /* 200 to 700 */
static float sample_of(int file, int64_t i) { return (float)file + (float)i / 10000; }

/* Two recordings in each file: the whole of it, and its second half. */
static fac_sound_bank *new_bank(int64_t samples) {
    char paths[FILES][1024];
    fac_sound_source sources[2 * FILES];
    fac_sound_bank *b;
    for (int f = 0; f < FILES; f++) {
        const int64_t n = size_of(f);
        char name[32];
        snprintf(name, sizeof name, "%d.wav", f);
        snprintf(paths[f], sizeof paths[f], "%s", path_of(name));
        fac_sound s = { n, 1, RATE, calloc((size_t)n, sizeof(float)) };
        assert_non_null(s.samples);
        for (int64_t i = 0; i < n; i++) s.samples[i] = sample_of(f, i);
        OK(fac_wav_save(&s, paths[f], FAC_WAV_F32, err));
        free(s.samples);
        for (int half = 0; half < 2; half++)
            sources[2 * f + half] = (fac_sound_source){ paths[f], n, half * n / 2 };
    }
    OK(fac_sound_bank_new(RATE, samples * (int64_t)sizeof(float), 2 * FILES, sources, &b, err));
    return b;
}

static bool right(int source, const float *x) {
    const int file = source / 2;
    const int64_t n = size_of(file), from = source % 2 * n / 2;
    for (int64_t i = from; i < n; i++)
        if (x[i - from] != sample_of(file, i)) return false;
    return true;
}

/* The second begins before the first ends: of the same file, and of another one. */
static void two_are_in_use_at_once(void **state) {
    fac_sound_bank *b = new_bank(10000);
    const float *first, *same, *other;
    (void)state;
    OK(fac_sound_bank_begin(b, 0, &first, err));
    OK(fac_sound_bank_begin(b, 1, &same, err));
    OK(fac_sound_bank_begin(b, 4, &other, err));
    assert_true(right(0, first) && right(1, same) && right(4, other));
    assert_int_equal(fac_sound_bank_reads(b), 2);
    fac_sound_bank_end(b, 0);
    fac_sound_bank_end(b, 1);
    fac_sound_bank_end(b, 4);
    fac_sound_bank_free(b);
}

/* The file that was used least recently goes, unless a thread reads it. */
static void what_is_in_use_stays(void **state) {
    fac_sound_bank *b = new_bank(600);
    const float *first, *x;
    (void)state;
    OK(fac_sound_bank_begin(b, 0, &first, err)); /* 200 */
    OK(fac_sound_bank_begin(b, 2, &x, err));     /* 300 */
    fac_sound_bank_end(b, 2);
    OK(fac_sound_bank_begin(b, 4, &x, err)); /* 400 */
    assert_true(right(0, first) && right(4, x));
    assert_int_equal(fac_sound_bank_bytes(b), 600 * sizeof(float));
    fac_sound_bank_end(b, 4);
    OK(fac_sound_bank_begin(b, 1, &x, err));
    assert_ptr_equal(x, first + 100);
    assert_int_equal(fac_sound_bank_reads(b), 3);
    fac_sound_bank_end(b, 0);
    fac_sound_bank_end(b, 1);
    OK(fac_sound_bank_begin(b, 10, &x, err)); /* 700: alone, though it is too large */
    assert_true(right(10, x));
    assert_int_equal(fac_sound_bank_bytes(b), 700 * sizeof(float));
    fac_sound_bank_end(b, 10);
    fac_sound_bank_free(b);
}

typedef struct reader {
    fac_sound_bank *bank;
    int64_t most; /* samples */
    uint64_t seed;
    atomic_int *wrong;
} reader;

static void *read_some(void *self) {
    const reader *r = self;
    for (int k = 0; k < TURNS; k++) {
        const int source = (int)(fac_random_bits(r->seed, 0, (uint64_t)k) % (2 * FILES));
        const float *x;
        if (fac_sound_bank_begin(r->bank, source, &x, NULL)) {
            ++*r->wrong;
            continue;
        }
        if (!right(source, x)) ++*r->wrong;
        if (fac_sound_bank_bytes(r->bank) > r->most * (int64_t)sizeof(float)) ++*r->wrong;
        fac_sound_bank_end(r->bank, source);
    }
    return NULL;
}

/* Room for less than one file, for one or two, for most, for all. */
static void many_threads_read_the_same(void **state) {
    static const int64_t rooms[] = { 1, 900, 2000, 10000 };
    (void)state;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        fac_sound_bank *b = new_bank(rooms[i]);
        pthread_t threads[THREADS];
        reader readers[THREADS];
        atomic_int wrong = 0;
        for (int k = 0; k < THREADS; k++) {
            readers[k] = (reader){ b, rooms[i] < 700 ? 700 : rooms[i], (uint64_t)k + 1, &wrong };
            assert_int_equal(pthread_create(&threads[k], NULL, read_some, &readers[k]), 0);
        }
        for (int k = 0; k < THREADS; k++) pthread_join(threads[k], NULL);
        assert_int_equal(wrong, 0);
        if (rooms[i] == 10000) assert_int_equal(fac_sound_bank_reads(b), FILES);
        fac_sound_bank_free(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(two_are_in_use_at_once),
                                        cmocka_unit_test(what_is_in_use_stays),
                                        cmocka_unit_test(many_threads_read_the_same) };
    return cmocka_run_group_tests_name("sound bank", tests, make_folder, remove_folder);
}
