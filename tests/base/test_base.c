/* src/base: errors, memory, arenas, texts, tables, random numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "allocations.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/table.h"
#include "base/text.h"
#include "facula/text.h"
#include "facula/version.h"

/* ---- the version ---- */

static void the_version_is_a_number(void **state) {
    char text[40];
    (void)state;
    assert_int_equal(fac_version(), FACULA_VERSION_NUMBER);
    snprintf(text, sizeof text, "%d.%d.%d", fac_version() / 10000, fac_version() / 100 % 100,
             fac_version() % 100);
    assert_string_equal(text, FACULA_VERSION);
}

/* ---- errors ---- */

static void errors_are_formatted(void **state) {
    (void)state;
    fac_error err = { 0 };
    assert_int_equal(fac_raise(&err, FAC_E_IO, "%s: line %d", "a.txt", 7), FAC_E_IO);
    assert_int_equal(err.status, FAC_E_IO);
    assert_string_equal(err.text, "a.txt: line 7");
    assert_int_equal(fac_raise_in(&err, FAC_E_FORMAT, "model %d", 3), FAC_E_FORMAT);
    assert_string_equal(err.text, "model 3: a.txt: line 7");
    fac_raise(&err, FAC_E_IO, "again %s", err.text);
    assert_string_equal(err.text, "again model 3: a.txt: line 7");
    assert_int_equal(fac_raise(NULL, FAC_E_IO, "nobody listens"), FAC_E_IO);
    fac_raise(&err, FAC_E_IO, "bell \a escape \x1b[31m");
    assert_string_equal(err.text, "bell ? escape ?[31m");
}

/* ---- text of others ---- */

static size_t put_letter(char *to, uint32_t c) {
    if (c < 0x80) return to[0] = (char)c, 1;
    const size_t n = 2u + (c >= 0x800) + (c >= 0x10000);
    for (size_t k = n - 1; k; k--, c >>= 6) to[k] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(0xf00 >> n | c);
    return n;
}

/* Every character there is, and every one of three bytes or fewer that is none. */
static void letters_are_known(void **state) {
    (void)state;
    int steering = 0;
    for (uint32_t c = 1; c <= 0x10ffff; c++) {
        char text[8] = { 0 };
        uint32_t got;
        const size_t n = put_letter(text, c);
        const bool surrogate = c >= 0xd800 && c < 0xe000;
        assert_int_equal(fac_utf8(text, &got), surrogate ? 1 : n);
        assert_int_equal(got, surrogate ? FAC_NO_LETTER : c);
        steering += fac_steers(c);
    }
    /* C0 but 0; DEL and C1; U+2028 to U+202E; U+2066 to U+2069 */
    assert_int_equal(steering, 31 + 33 + 7 + 4);
    static const char *const none[] = { "\x80",
                                        "\xbf",
                                        "\xc0\x80",
                                        "\xc1\xbf",
                                        "\xc2",
                                        "\xc2"
                                        "a",
                                        "\xe0\x9f\xbf",
                                        "\xe2\x80",
                                        "\xed\xa0\x80",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xf8\x88\x80\x80\x80",
                                        "\xff" };
    for (size_t k = 0; k < sizeof none / sizeof *none; k++) {
        uint32_t got;
        assert_int_equal(fac_utf8(none[k], &got), 1);
        assert_int_equal(got, FAC_NO_LETTER);
    }
}

static void text_becomes_plain(void **state) {
    (void)state;
    static const char *const pairs[][2] = { { "", "" },
                                            { "conv1/Relu:0", NULL },
                                            { "\xef\xbf\xbd", NULL },
                                            { "\xe2\x80\x9e", NULL },
                                            { "gr\xc3\xb6\xc3\x9f"
                                              "e \xe5\xb1\xa4 \xf0\x9f\x99\x82",
                                              NULL },
                                            { "a\nb\tc\r\a\x1b[31m\x7f", "a?b?c???[31m?" },
                                            { "\xc2\x9b"
                                              "31m\x9b"
                                              "31m",
                                              "?31m?31m" },
                                            { "\xe2\x80\xae"
                                              "abc\xe2\x81\xa6\xe2\x80\xa8",
                                              "?abc??" },
                                            { "cut \xe2\x80", "cut ??" } };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        char text[64];
        const char *want = pairs[k][1] ? pairs[k][1] : pairs[k][0];
        strcpy(text, pairs[k][0]);
        assert_int_equal(fac_plain(text), strlen(want));
        assert_string_equal(text, want);
    }
    fac_error err = { 0 };
    fac_raise(&err, FAC_E_IO, "%s", "a\nb \xc2\x9b \xe2\x80\xae \xff");
    assert_string_equal(err.text, "a?b ? ? ?");
}

static void long_errors_are_cut(void **state) {
    (void)state;
    char longer[2000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    fac_error err = { 0 };
    fac_raise(&err, FAC_E_IO, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(err.text + sizeof err.text - 5, "x...");
    fac_raise_in(&err, FAC_E_IO, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void statuses_have_names(void **state) {
    (void)state;
    assert_string_equal(fac_status_name(FAC_OK), "FAC_OK");
    assert_string_equal(fac_status_name(FAC_E_INTERNAL), "FAC_E_INTERNAL");
    assert_non_null(fac_status_name((fac_status)99));
}

/* ---- memory ---- */

static void sizes_are_checked(void **state) {
    (void)state;
    size_t n;
    assert_null(fac_alloc(SIZE_MAX / 2, 3));
    assert_null(fac_alloc(SIZE_MAX, 1));
    assert_null(fac_alloc_aligned(SIZE_MAX - 10));
    assert_false(fac_size_mul(SIZE_MAX, 2, &n));
    assert_false(fac_size_add(SIZE_MAX, 1, &n));
    assert_true(fac_size_mul(1 << 20, 3, &n));
    assert_int_equal(n, 3 << 20);
    void *p = fac_alloc(0, 8);
    assert_non_null(p);
    assert_null(fac_resize(p, SIZE_MAX / 2, 4));
    fac_release(p);
}

static void memory_is_zero_or_aligned(void **state) {
    (void)state;
    unsigned char *p = fac_alloc(1000, 3);
    for (int i = 0; i < 3000; i++) assert_int_equal(p[i], 0);
    fac_release(p);
    for (size_t bytes = 0; bytes < 20 << 20; bytes = bytes * 3 + 1) {
        unsigned char *q = fac_alloc_aligned(bytes);
        assert_non_null(q);
        assert_int_equal((uintptr_t)q % 64, 0);
        if (bytes) q[0] = q[bytes - 1] = 1;
        fac_release_aligned(q);
    }
    assert_null(fac_copy_text(NULL));
}

static void arrays_grow(void **state) {
    (void)state;
    int *a = NULL;
    size_t room = 0;
    for (size_t i = 0; i < 1000; i++) {
        assert_true(fac_reserve(&a, &room, i + 1, sizeof *a));
        a[i] = (int)i;
    }
    for (int i = 0; i < 1000; i++) assert_int_equal(a[i], i);
    allocations_left = 0;
    size_t before = room;
    assert_false(fac_reserve(&a, &room, room + 1, sizeof *a));
    allocations_left = -1;
    assert_int_equal(room, before);
    assert_int_equal(a[999], 999);
    assert_false(fac_reserve(&a, &room, SIZE_MAX / 2, sizeof *a));
    fac_release(a);
}

/* ---- arena, text ---- */

static void arenas_give_zeroed_aligned_memory(void **state) {
    (void)state;
    fac_arena a = { 0 };
    char *hello = fac_arena_text(&a, "hello");
    uint64_t sizes = 1;
    for (int i = 0; i < 2000; i++) {
        size_t n = fac_random_bits(5, 0, (uint64_t)i) % (i % 100 ? 300 : 700000);
        unsigned char *p = fac_arena_alloc(&a, n, 1);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t k = 0; k < n; k++) sizes += p[k];
        memset(p, 0xee, n);
    }
    assert_int_equal(sizes, 1);
    assert_string_equal(hello, "hello");
    assert_string_equal(fac_arena_print(&a, "%d-%s", 12, "x"), "12-x");
    assert_null(fac_arena_text(&a, NULL));
    assert_null(fac_arena_alloc(&a, SIZE_MAX / 2, 4));
    assert_null(fac_arena_alloc(&a, SIZE_MAX - 8, 1));
    assert_ptr_not_equal(fac_arena_alloc(&a, 0, 1), fac_arena_alloc(&a, 0, 1));
    allocations_left = 0;
    assert_null(fac_arena_alloc(&a, 1 << 21, 1));
    allocations_left = -1;
    assert_non_null(fac_arena_alloc(&a, 1 << 21, 1));
    fac_arena_free(&a);
    fac_arena_free(&a);
}

static void texts_grow_and_fail_stickily(void **state) {
    (void)state;
    fac_text t = { 0 };
    for (int i = 0; i < 100; i++) fac_text_print(&t, "%d,", i);
    fac_text_add(&t, "");
    fac_text_add_bytes(&t, "end\0x", 5);
    assert_int_equal(t.n, 190 + 100 + 5);
    assert_int_equal(t.s[t.n], 0);
    assert_memory_equal(t.s + 290, "end\0x", 5);
    allocations_left = 0;
    for (int i = 0; i < 1000 && !t.failed; i++) fac_text_add(&t, "0123456789");
    allocations_left = -1;
    assert_true(t.failed);
    size_t n = t.n;
    fac_text_add(&t, "x");
    assert_int_equal(t.n, n);
    fac_text_free(&t);
    assert_null(t.s);
}

/* ---- tables and hashes ---- */

static void tables_find_what_was_put(void **state) {
    (void)state;
    static char keys[5000][16];
    fac_table t = { 0 };
    assert_null(fac_table_get(&t, "nothing"));
    for (int i = 0; i < 5000; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        assert_true(fac_table_put(&t, keys[i], keys[i]));
    }
    for (int i = 0; i < 5000; i++) assert_ptr_equal(fac_table_get(&t, keys[i]), keys[i]);
    assert_null(fac_table_get(&t, "k5000"));
    assert_int_equal(t.n, 5000);
    assert_true(fac_table_put(&t, "k17", keys[0]));
    assert_int_equal(t.n, 5000);
    assert_ptr_equal(fac_table_get(&t, "k17"), keys[0]);
    fac_table_free(&t);
    allocations_left = 0;
    assert_false(fac_table_put(&t, "a", keys[0]));
    allocations_left = -1;
    assert_null(fac_table_get(&t, "a"));
}

static void hashes_differ(void **state) {
    (void)state;
    fac_hash h = fac_hash_start(0), seen[600];
    int n = 0;
    unsigned char bytes[40] = { 0 };
    for (size_t k = 0; k <= 40; k++)
        seen[n++] = fac_hash_bytes(h, bytes, k); /* zeros of every length */
    for (int bit = 0; bit < 320; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        seen[n++] = fac_hash_bytes(h, bytes, 40);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    seen[n++] = fac_hash_text(h, NULL);
    seen[n++] = fac_hash_text(fac_hash_start(1), "");
    seen[n++] = fac_hash_text(fac_hash_text(h, "a"), "b");
    seen[n++] = fac_hash_text(fac_hash_text(h, "b"), "a");
    seen[n++] = fac_hash_text(h, "ab");
    seen[n++] = fac_hash_join(h, fac_hash_start(7));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (seen[i].a == seen[k].a || seen[i].b == seen[k].b)
                fail_msg("hashes %d and %d share a lane", i, k);
    assert_true(fac_hash_equal(fac_hash_text(h, "same"), fac_hash_bytes(h, "same", 4)));
}

/* ---- random numbers ---- */

/* The three vectors that come with Random123 (kat_vectors). */
static void philox_matches_its_authors(void **state) {
    (void)state;
    static const struct {
        uint64_t key, stream, counter;
        uint32_t out[4];
    } known[] = {
        { 0, 0, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { UINT64_MAX, UINT64_MAX, UINT64_MAX, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { 0x299f31d0a4093822,
          0x0370734413198a2e,
          0x85a308d3243f6a88,
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        uint32_t out[4];
        fac_philox(known[k].key, known[k].stream, known[k].counter, out);
        assert_memory_equal(out, known[k].out, sizeof out);
    }
}

static void random_numbers_have_their_moments(void **state) {
    (void)state;
    enum { N = 200000 };
    double sum = 0, squares = 0, normal = 0, normal2 = 0, normal4 = 0;
    for (uint64_t i = 0; i < N; i++) {
        double u = fac_random_uniform(1, 2, i), z = fac_random_normal(1, 3, i);
        assert_true(u >= 0 && u < 1);
        sum += u;
        squares += u * u;
        normal += z;
        normal2 += z * z;
        normal4 += z * z * z * z;
    }
    assert_true(fabs(sum / N - 1. / 2) < 0.003);
    assert_true(fabs(squares / N - 1. / 3) < 0.003);
    assert_true(fabs(normal / N) < 0.01);
    assert_true(fabs(normal2 / N - 1) < 0.02);
    assert_true(fabs(normal4 / N - 3) < 0.15);
}

static void fill_is_a_function_of_the_index(void **state) {
    (void)state;
    float all[1000], part[1000];
    fac_random_fill(9, 1, -2, 3, 1000, all);
    for (size_t n = 0; n <= 100; n++) {
        fac_random_fill(9, 1, -2, 3, n, part);
        assert_memory_equal(all, part, n * sizeof *all);
    }
    for (int i = 0; i < 1000; i++) {
        uint32_t block[4];
        fac_philox(9, 1, (uint64_t)i / 4, block);
        assert_true(all[i] == -2 + 5 * 0x1p-24f * (float)(block[i % 4] >> 8));
        assert_true(all[i] >= -2 && all[i] <= 3);
    }
}

static void many_uniforms_are_the_same_as_single_ones(void **state) {
    (void)state;
    double many[100];
    for (uint64_t first = 0; first < 5; first++)
        for (size_t n = 0; n <= 100; n += first + 7) {
            fac_random_uniforms(11, 4, first, n, many);
            for (size_t k = 0; k < n; k++)
                assert_true(many[k] == fac_random_uniform(11, 4, first + k));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_a_number),
        cmocka_unit_test(errors_are_formatted),
        cmocka_unit_test(long_errors_are_cut),
        cmocka_unit_test(letters_are_known),
        cmocka_unit_test(text_becomes_plain),
        cmocka_unit_test(statuses_have_names),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(memory_is_zero_or_aligned),
        cmocka_unit_test(arrays_grow),
        cmocka_unit_test(arenas_give_zeroed_aligned_memory),
        cmocka_unit_test(texts_grow_and_fail_stickily),
        cmocka_unit_test(tables_find_what_was_put),
        cmocka_unit_test(hashes_differ),
        cmocka_unit_test(philox_matches_its_authors),
        cmocka_unit_test(random_numbers_have_their_moments),
        cmocka_unit_test(many_uniforms_are_the_same_as_single_ones),
        cmocka_unit_test(fill_is_a_function_of_the_index),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
