/* Pages without a server: after something failed they go on where they stood, and say no longer
 * that it failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "studio/images/images.h"
#include "studio/points/points.h"
#include "studio/sentences/sentences.h"

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

/* ---- data ---- */

enum { IMAGES = 40, SENTENCES = 40 };
static char folder[] = "/tmp/facula-again-XXXXXX";

static FILE *create(const char *name) {
    char path[100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    return f;
}

static void write_images(const char *part) {
    char name[60];
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    FILE *f = create(name);
    fwrite((const char[]){ 0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, 28, 0, 0, 0, 28 }, 1, 16, f);
    for (int i = 0; i < IMAGES * IMAGES_PIXELS; i++) fputc(i * 7 % 251, f);
    fclose(f);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    f = create(name);
    fwrite((const char[]){ 0, 0, 8, 1, 0, 0, 0, IMAGES }, 1, 8, f);
    for (int i = 0; i < IMAGES; i++) fputc(i % 10, f);
    fclose(f);
}

static void write_sentences(const char *name) {
    FILE *f = create(name);
    for (int i = 0; i < SENTENCES; i++)
        fprintf(f, "film %d is %s\t%d\n", i % 9, i % 2 ? "good" : "bad", i % 2);
    fclose(f);
}

static int write_data(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    write_images("train");
    write_images("t10k");
    write_sentences("train.tsv");
    write_sentences("dev.tsv");
    return 0;
}

static int remove_data(void **state) {
    static const char *const names[] = { "train-images-idx3-ubyte",
                                         "train-labels-idx1-ubyte",
                                         "t10k-images-idx3-ubyte",
                                         "t10k-labels-idx1-ubyte",
                                         "train.tsv",
                                         "dev.tsv" };
    char path[100];
    (void)state;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[k]);
        unlink(path);
    }
    return rmdir(folder);
}

/* ---- pages ---- */

static void *open_page(const page *of, const char *how) {
    const studio_means with = { .opts = { .data = folder, .threads = 1 } };
    void *self = NULL;
    cJSON *j = cJSON_Parse(how);
    assert_non_null(j);
    OK(of->open(&with, j, &self, &err));
    cJSON_Delete(j);
    return self;
}

static void command(const page *of, void *self, const char *text) {
    fac_text answer = { 0 };
    cJSON *what = cJSON_Parse(text);
    assert_non_null(what);
    OK(of->command(self, what, &answer, &err));
    cJSON_Delete(what);
    fac_text_free(&answer);
}

/* A loader that has no batch: each step fails until there is another loader. */
static void break_loader(fac_loader **loader, const fac_dataset *d, const fac_batches *b) {
    fac_loader_free(*loader);
    OK(fac_loader_new(d, b, 0, 0, 0, loader, &err));
}

/* What the page says of itself. */
static bool says_stopped(const page *of, void *self) {
    frames *f = fac_frames_new();
    fac_text t = { 0 };
    assert_non_null(f);
    const int ticket = fac_frames_ticket(f);
    of->show(self, f);
    assert_true(fac_frames_take(f, ticket, 0, &t));
    fac_text_add_bytes(&t, "", 1);
    const bool says = t.n > 1 && memmem(t.s, t.n, "\"stopped\"", 9);
    fac_text_free(&t);
    fac_frames_free(f);
    return says;
}

/* The same for each page: the types differ, what they hold is called the same but for
 * the number of steps. */
#define GOES_ON(TYPE, PAGE, STEP, HOW)                                                             \
    TYPE *p = open_page(&(PAGE), HOW);                                                             \
    command(&(PAGE), p, "{\"do\":\"step\",\"n\":3}");                                              \
    assert_int_equal(p->STEP, 3);                                                                  \
    break_loader(&p->loader, &p->train, &p->order);                                                \
    command(&(PAGE), p, "{\"do\":\"step\",\"n\":1}");                                              \
    assert_int_equal(p->STEP, 3);                                                                  \
    assert_true(says_stopped(&(PAGE), p));                                                         \
    command(&(PAGE), p, "{\"do\":\"step\",\"n\":4}");                                              \
    assert_int_equal(p->STEP, 7);                                                                  \
    assert_false(says_stopped(&(PAGE), p));                                                        \
    break_loader(&p->loader, &p->train, &p->order);                                                \
    command(&(PAGE), p, "{\"do\":\"play\"}");                                                      \
    (PAGE).work(p);                                                                                \
    assert_false(p->playing);                                                                      \
    assert_int_equal(p->STEP, 7);                                                                  \
    command(&(PAGE), p, "{\"do\":\"play\"}");                                                      \
    for (int k = 0; k < 1000 && p->STEP == 7; k++, usleep(1000)) (PAGE).work(p);                   \
    assert_true(p->STEP > 7);                                                                      \
    assert_false(says_stopped(&(PAGE), p))

/* A round of judging that fails comes again by itself. */
#define JUDGES_AGAIN(PAGE)                                                                         \
    do {                                                                                           \
        command(&(PAGE), p, "{\"do\":\"pause\"}");                                                 \
        const int64_t count = p->test.count;                                                       \
        p->judged = false;                                                                         \
        p->test.count = 0;                                                                         \
        (PAGE).work(p);                                                                            \
        p->test.count = count;                                                                     \
        assert_int_not_equal(p->unjudged.status, FAC_OK);                                          \
        assert_true(says_stopped(&(PAGE), p));                                                     \
        p->judged_at = 1; /* long ago */                                                           \
        for (int k = 0; k < 100 && !p->judged; k++) (PAGE).work(p);                                \
        assert_true(p->judged);                                                                    \
        assert_false(says_stopped(&(PAGE), p));                                                    \
    } while (0)

static void points_go_on(void **state) {
    (void)state;
    GOES_ON(points, fac_page_points, step, "{\"net\":\"4,tanh\",\"batch\":10}");
    fac_page_points.close(p);
}

static void images_go_on(void **state) {
    (void)state;
    GOES_ON(images, fac_page_images, done.step, "{\"samples\":40,\"batch\":10}");
    JUDGES_AGAIN(fac_page_images);
    fac_page_images.close(p);
}

static void sentences_go_on(void **state) {
    (void)state;
    GOES_ON(sentences, fac_page_text, done.step, "{\"batch\":10,\"net\":\"4,2-3\"}");
    JUDGES_AGAIN(fac_page_text);
    fac_page_text.close(p);
}

/* Numbers are told also where there is no picture, and the picture follows. */
static void what_was_not_seen_is_seen_later(void **state) {
    images *p = open_page(&fac_page_images, "{\"samples\":40,\"batch\":10}");
    fac_tensor *right = p->x;
    (void)state;
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(3), &p->x, &err));
    assert_true(says_stopped(&fac_page_images, p));
    assert_true(p->dirty);
    fac_tensor_free(p->x);
    p->x = right;
    assert_false(says_stopped(&fac_page_images, p));
    assert_false(p->dirty);
    fac_page_images.close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_go_on),
        cmocka_unit_test(images_go_on),
        cmocka_unit_test(sentences_go_on),
        cmocka_unit_test(what_was_not_seen_is_seen_later),
    };
    return cmocka_run_group_tests(tests, write_data, remove_data);
}
