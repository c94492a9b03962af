/* Data sets of sounds: folders, digits and tables; which recordings are for testing; windows that
 * are cut anew in each epoch. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "data/sets/dataset_internal.h"
#include "data/sound/sound_bank.h"
#include "sound_check.h"
#include "folder.h"

enum { RATE = 1000 };

/* Sample i of recording `mark` is mark + i / 10000, so a window tells where it comes from. */
static float sample_of(int mark, int64_t i) { return (float)mark + (float)i / 10000; }

static void put_recording(const char *name, int mark, int samples) {
    fac_sound s = { samples, 1, RATE, calloc((size_t)samples, sizeof(float)) };
    for (int i = 0; i < samples; i++) s.samples[i] = sample_of(mark, i);
    OK(fac_wav_save(&s, path_of(name), FAC_WAV_F32, err));
    free(s.samples);
}

static void put_text(const char *name, const char *text) {
    FILE *f = fopen(path_of(name), "w");
    fputs(text, f);
    fclose(f);
}

/* Five recordings of each of two birds, 250 to 2,250 samples long. */
static void put_birds(void) {
    static bool there;
    char name[64];
    if (there) return;
    there = true;
    assert_int_equal(mkdir(path_of("birds"), 0777), 0);
    for (int c = 0; c < 2; c++) {
        snprintf(name, sizeof name, "birds/%s", c ? "wren" : "robin");
        assert_int_equal(mkdir(path_of(name), 0777), 0);
        for (int k = 0; k < 5; k++) {
            snprintf(name, sizeof name, "birds/%s/%d.wav", c ? "wren" : "robin", k);
            put_recording(name, c * 10 + k, 250 + 500 * k);
        }
    }
}

/* All samples of an epoch, in their own order. */
static fac_tensor *epoch_of(const fac_dataset *d, uint64_t seed, int64_t epoch) {
    const fac_batches b = { .size = d->count, .seed = seed };
    fac_tensor *x = NULL, *labels = NULL;
    OK(fac_batch(d, &b, epoch, 0, &x, &labels, err));
    fac_tensor_free(labels);
    return x;
}

static int mark_of(float first) { return (int)first; }
static int64_t place_of(float first) {
    return (int64_t)((first - (float)(int)first) * 10000 + .5f);
}

static void windows_of_a_recording_stay_together(void **state) {
    (void)state;
    put_birds();
    fac_dataset train, test;
    const fac_sounds_opts o = { .rate = RATE, .seconds = 0.5, .test = 0.3, .seed = 3 };
    OK(fac_dataset_sounds(path_of("birds"), &o, &train, &test, err));
    assert_int_equal(train.item.d[0], 500);
    assert_int_equal(train.classes, 2);
    assert_string_equal(train.class_names[0], "robin");
    bool seen[2][20] = { { false } };
    for (int part = 0; part < 2; part++) {
        const fac_dataset *d = part ? &test : &train;
        fac_tensor *x = epoch_of(d, 0, 0);
        for (int64_t i = 0; i < d->count; i++) {
            const int mark = mark_of(((const float *)fac_tensor_data(x))[i * 500]);
            assert_int_equal(d->labels[i], mark / 10);
            seen[part][mark] = true;
        }
        fac_tensor_free(x);
    }
    int tests = 0;
    for (int k = 0; k < 20; k++) {
        assert_false(seen[0][k] && seen[1][k]);
        tests += seen[1][k];
    }
    assert_int_equal(tests, 3);
    fac_dataset halves[2];
    assert_int_equal(fac_dataset_split(&train, .5, 1, &halves[0], &halves[1], NULL),
                     FAC_E_ARGUMENT);
    fac_dataset_free(&train);
    fac_dataset_free(&test);
}

static void same_batches(const fac_dataset *a, const fac_dataset *b, const fac_augment *how) {
    const fac_batches order = { .size = 3, .shuffle = true, .seed = 5, .augment = *how };
    assert_int_equal(a->count, b->count);
    for (int64_t k = 0; k < 3 * fac_batches_count(a, &order); k++) {
        const int64_t n = fac_batches_count(a, &order);
        fac_tensor *x[2], *labels[2];
        OK(fac_batch(a, &order, k / n, k % n, &x[0], &labels[0], err));
        OK(fac_batch(b, &order, k / n, k % n, &x[1], &labels[1], err));
        for (int i = 0; i < 2; i++) {
            fac_tensor *const *of = i ? labels : x;
            const fac_type type = fac_tensor_type(of[0]);
            assert_memory_equal(fac_tensor_data(of[0]), fac_tensor_data(of[1]),
                                fac_type_bytes(&type));
        }
        for (int i = 0; i < 2; i++) {
            fac_tensor_free(x[i]);
            fac_tensor_free(labels[i]);
        }
    }
}

/* Whatever stays in memory, the samples are the same bit by bit, and no more stays than may. */
static void large_sets_are_read_from_their_files(void **state) {
    enum { MOST = 4 * 3000 }; /* all of it are 12,500 samples; the longest has 2,250 */
    const fac_augment none = { 0 }, all = { .shift = .2, .gain = 3, .noise = .1, .mixup = .3 };
    fac_sounds_opts o = { .rate = RATE / 2, .seconds = 0.5, .test = 0.3, .seed = 3 };
    fac_dataset train[2], test[2];
    (void)state;
    put_birds();
    for (int resampled = 0; resampled < 2; resampled++) {
        o.rate = resampled ? RATE / 2 : RATE;
        o.memory = 0;
        OK(fac_dataset_sounds(path_of("birds"), &o, &train[0], &test[0], err));
        o.memory = MOST;
        OK(fac_dataset_sounds(path_of("birds"), &o, &train[1], &test[1], err));
        assert_non_null(train[0].values);
        assert_null(train[1].values);
        same_batches(&train[0], &train[1], &none);
        same_batches(&train[0], &train[1], &all);
        same_batches(&test[0], &test[1], &none);
        assert_in_range(fac_sound_bank_bytes(train[1].memory->bank), 1, MOST);
        for (int k = 0; k < 2; k++) {
            fac_dataset_free(&train[k]);
            fac_dataset_free(&test[k]);
        }
    }
}

/* What is read again is what was read before, or an error that names the file; then it goes on. */
static void files_that_changed_are_refused(void **state) {
    const fac_sounds_opts o = { .rate = RATE, .seconds = 0.5, .test = 0.5, .memory = 1 };
    const fac_batches order = { .size = 2 };
    fac_dataset train, test;
    fac_tensor *x, *labels;
    fac_error why;
    (void)state;
    assert_int_equal(mkdir(path_of("moving"), 0777), 0);
    for (int c = 0; c < 4; c++) {
        char name[64];
        snprintf(name, sizeof name, "moving/%d", c / 2);
        mkdir(path_of(name), 0777);
        snprintf(name, sizeof name, "moving/%d/%d.wav", c / 2, c);
        put_recording(name, c, 500);
    }
    OK(fac_dataset_sounds(path_of("moving"), &o, &train, &test, err));
    OK(fac_batch(&train, &order, 0, 0, &x, &labels, err));
    fac_tensor_free(x);
    fac_tensor_free(labels);
    const int64_t reads = fac_sound_bank_reads(train.memory->bank);
    assert_int_equal(reads, 2); /* one at a time: one byte may stay */
    for (int c = 0; c < 4; c++) {
        char name[64];
        snprintf(name, sizeof name, "moving/%d/%d.wav", c / 2, c);
        put_recording(name, c, 400);
    }
    assert_int_equal(fac_batch(&train, &order, 0, 0, &x, &labels, &why), FAC_E_FORMAT);
    assert_non_null(strstr(why.text, ".wav: it had 500 samples"));
    for (int c = 0; c < 4; c++) {
        char name[64];
        snprintf(name, sizeof name, "moving/%d/%d.wav", c / 2, c);
        put_recording(name, c, 500);
    }
    OK(fac_batch(&train, &order, 0, 0, &x, &labels, err));
    fac_tensor_free(x);
    fac_tensor_free(labels);
    fac_dataset_free(&train);
    fac_dataset_free(&test);
}

/* Every window is a stretch of its recording, which follows from seed, epoch and sample. */
static void windows_are_cut_anew(void **state) {
    (void)state;
    put_birds();
    fac_dataset train, test;
    const fac_sounds_opts o = { .rate = RATE, .seconds = 0.5, .test = 0.3, .seed = 3 };
    OK(fac_dataset_sounds(path_of("birds"), &o, &train, &test, err));
    int moved = 0, long_ones = 0, beyond = 0;
    for (int64_t epoch = 0; epoch < 8; epoch++) {
        fac_tensor *x = epoch_of(&train, 7, epoch), *again = epoch_of(&train, 7, epoch);
        const float *v = fac_tensor_data(x);
        assert_memory_equal(v, fac_tensor_data(again), (size_t)train.count * 500 * sizeof *v);
        for (int64_t i = 0; i < train.count; i++) {
            const fac_cut *c = &train.cuts[i];
            const int mark = mark_of(v[i * 500]);
            const int64_t from = place_of(v[i * 500]);
            for (int64_t k = 0; k < 500; k++)
                assert_true(fabsf(v[i * 500 + k] - sample_of(mark, (from + k) % c->size)) < 2e-5f);
            if (c->size <= 500)
                assert_int_equal(from, 0);
            else
                assert_true(from + 500 <= c->size);
            long_ones += c->size > 500;
            moved += c->size > 500 && from != c->from;
            beyond += c->size > 500 && from > c->size - 700;
        }
        fac_tensor_free(x);
        fac_tensor_free(again);
    }
    assert_true(moved > long_ones * 9 / 10);
    assert_true(beyond > 0); /* the end of a recording is heard, too */
    fac_tensor *a = epoch_of(&test, 7, 0), *b = epoch_of(&test, 7, 5);
    assert_memory_equal(fac_tensor_data(a), fac_tensor_data(b), (size_t)test.count * 500 * 4);
    fac_tensor_free(a);
    fac_tensor_free(b);
    fac_dataset_free(&train);
    fac_dataset_free(&test);
}

static void digits_by_index_and_speaker(void **state) {
    (void)state;
    assert_int_equal(mkdir(path_of("digits"), 0777), 0);
    static const char *const names[] = { "0_theo_0", "0_theo_7",    "1_theo_4",
                                         "1_theo_5", "0_jackson_2", "1_jackson_9" };
    for (int k = 0; k < 6; k++) {
        char name[64];
        snprintf(name, sizeof name, "digits/%s.wav", names[k]);
        put_recording(name, k + 1, 600);
    }
    fac_dataset train, test;
    fac_sounds_opts o = { .rate = RATE, .seconds = 1, .digits = true, .zeros = true };
    OK(fac_dataset_sounds(path_of("digits"), &o, &train, &test, err));
    assert_int_equal(train.count, 3);
    assert_int_equal(test.count, 3);
    fac_tensor *x = epoch_of(&test, 0, 0);
    const float *v = fac_tensor_data(x);
    const int first = mark_of(v[1000]);
    assert_true(first == 1 || first == 3 || first == 5);
    assert_true(v[999] == 0 && v[599] > 1);
    fac_tensor_free(x);
    fac_dataset_free(&train);
    fac_dataset_free(&test);
    o.hold_out = "jackson";
    OK(fac_dataset_sounds(path_of("digits"), &o, &train, &test, err));
    assert_int_equal(test.count, 2);
    fac_dataset_free(&train);
    fac_dataset_free(&test);
    o.hold_out = "nobody";
    assert_int_equal(fac_dataset_sounds(path_of("digits"), &o, &train, &test, NULL),
                     FAC_E_ARGUMENT);
}

/* ---- tables ---- */

static void stretches_of_a_table(void **state) {
    (void)state;
    put_birds();
    put_text("table.csv", "birds/robin/4.wav,robin,0.5,1.2\n\"birds/wren/4.wav\",wren,,0.6\r\n"
                          "birds/robin/4.wav,robin,1.9\nbirds/wren/1.wav,wren\n");
    fac_dataset all;
    const fac_sounds_opts o = { .rate = RATE, .seconds = 0.5, .zeros = true };
    OK(fac_dataset_sounds(path_of("table.csv"), &o, NULL, &all, err));
    assert_int_equal(all.count, 5); /* 750 samples give two windows */
    static const struct {
        int mark, from, label;
    } want[] = { { 4, 500, 0 }, { 14, 0, 1 }, { 4, 1900, 0 }, { 11, 0, 1 }, { 11, 250, 1 } };
    fac_tensor *x = epoch_of(&all, 0, 0);
    for (int k = 0; k < 5; k++) {
        const float *v = (const float *)fac_tensor_data(x) + 500 * k;
        assert_int_equal(mark_of(v[0]), want[k].mark);
        assert_true(llabs(place_of(v[0]) - want[k].from) <= 1);
        assert_int_equal(all.labels[k], want[k].label);
    }
    assert_true(((const float *)fac_tensor_data(x))[2 * 500 + 350] == 0); /* after the end */
    fac_tensor_free(x);
    fac_dataset_free(&all);
}

/* Records of a group, or of a file, are never in both parts. */
static void groups_are_not_split(void **state) {
    (void)state;
    put_birds();
    static const char *const birds[] = { "robin", "wren" };
    char text[4096] = "label,group,start,file\n";
    for (int k = 0; k < 30; k++)
        snprintf(text + strlen(text), 100, "%s,place %d,%g,birds/%s/4.wav\n", birds[k % 2], k % 10,
                 k * .05, birds[k % 2]);
    put_text("groups.csv", text);
    for (uint64_t seed = 0; seed < 20; seed++) {
        fac_dataset train, test;
        const fac_sounds_opts o = { .rate = RATE, .seconds = 2, .test = .2, .seed = seed };
        OK(fac_dataset_sounds(path_of("groups.csv"), &o, &train, &test, err));
        assert_int_equal(test.count, 6); /* two of ten places, three records each */
        assert_int_equal(train.count, 24);
        fac_dataset_free(&train);
        fac_dataset_free(&test);
    }
    fac_dataset train, test;
    const fac_sounds_opts held = { .rate = RATE, .seconds = 2, .hold_out = "place 3" };
    OK(fac_dataset_sounds(path_of("groups.csv"), &held, &train, &test, err));
    assert_int_equal(test.count, 3);
    fac_dataset_free(&train);
    fac_dataset_free(&test);
}

static void bad_tables_are_named(void **state) {
    (void)state;
    put_birds();
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "birds/robin/4.wav\n", ":1: a record needs FILE,label" },
        { "birds/robin/4.wav,robin\n,wren\n", ":2: a record needs" },
        { "birds/robin/4.wav,robin,x\n", ":1: start is \"x\"" },
        { "birds/robin/4.wav,robin,-1\n", "start is \"-1\"" },
        { "birds/robin/4.wav,robin,1,0.5\n", "end is not after" },
        { "birds/robin/4.wav,robin,1,nan\n", "end is \"nan\"" },
        { "birds/robin/4.wav,robin\nbirds/wren/9.wav,wren\n", "9.wav" },
        { "birds/robin/4.wav,robin,7\nbirds/wren/1.wav,wren\n", "nothing from 7 s on" },
        { "birds/robin/4.wav,\"robin\n", "never closed" },
        { "birds/robin/4.wav,robin\n", "1 classes" },
        { "", "0 sounds" },
    };
    const fac_sounds_opts o = { .rate = RATE, .seconds = 1 };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        fac_dataset all = { 0 };
        fac_error e = { 0 };
        put_text("bad.csv", bad[k].text);
        if (!fac_dataset_sounds(path_of("bad.csv"), &o, NULL, &all, &e))
            fail_msg("\"%s\" was read", bad[k].text);
        if (!strstr(e.text, bad[k].words))
            fail_msg("\"%s\": \"%s\" lacks \"%s\"", bad[k].text, e.text, bad[k].words);
        assert_null(all.memory);
    }
    static const char *const classes[] = { "robin", "owl" };
    const fac_sounds_opts known = { .rate = RATE, .seconds = 1, .classes = classes, .nclasses = 2 };
    fac_dataset all;
    fac_error e = { 0 };
    assert_int_equal(fac_dataset_sounds(path_of("birds"), &known, NULL, &all, &e), FAC_E_FORMAT);
    assert_non_null(strstr(e.text, "\"wren\""));
}

/* Labels keep the numbers of the model, whatever is met first. */
static void classes_of_a_model(void **state) {
    (void)state;
    put_birds();
    static const char *const classes[] = { "wren", "owl", "robin" };
    const fac_sounds_opts o = { .rate = RATE, .seconds = 5, .classes = classes, .nclasses = 3 };
    fac_dataset all;
    OK(fac_dataset_sounds(path_of("birds"), &o, NULL, &all, err));
    assert_int_equal(all.classes, 3);
    assert_int_equal(all.count, 10);
    for (int k = 0; k < 10; k++) assert_int_equal(all.labels[k], k < 5 ? 2 : 0);
    fac_dataset_free(&all);
}

static void files_that_a_path_means(void **state) {
    (void)state;
    put_birds();
    fac_sound_files f;
    OK(fac_sound_files_find(path_of("birds"), &f, err));
    assert_int_equal(f.count, 10);
    assert_non_null(strstr(f.path[0], "robin/0.wav"));
    fac_sound_files_free(&f);
    OK(fac_sound_files_find(path_of("birds/wren"), &f, err));
    assert_int_equal(f.count, 5);
    fac_sound_files_free(&f);
    put_text("two.csv", "birds/robin/4.wav,robin,0.5,1\nbirds/wren/4.wav,wren\n");
    OK(fac_sound_files_find(path_of("two.csv"), &f, err));
    assert_int_equal(f.count, 2);
    assert_true(f.start[0] == .5 && f.end[0] == 1 && f.end[1] == 0);
    fac_sound_files_free(&f);
    OK(fac_sound_files_find(path_of("birds/robin/1.wav"), &f, err));
    assert_int_equal(f.count, 1);
    fac_sound_files_free(&f);
    assert_int_equal(mkdir(path_of("none"), 0777), 0);
    assert_int_equal(fac_sound_files_find(path_of("none"), &f, NULL), FAC_E_FORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_a_recording_stay_together),
        cmocka_unit_test(large_sets_are_read_from_their_files),
        cmocka_unit_test(files_that_changed_are_refused),
        cmocka_unit_test(windows_are_cut_anew),
        cmocka_unit_test(digits_by_index_and_speaker),
        cmocka_unit_test(stretches_of_a_table),
        cmocka_unit_test(groups_are_not_split),
        cmocka_unit_test(bad_tables_are_named),
        cmocka_unit_test(classes_of_a_model),
        cmocka_unit_test(files_that_a_path_means),
    };
    return cmocka_run_group_tests_name("sound sets", tests, make_folder, remove_folder);
}
