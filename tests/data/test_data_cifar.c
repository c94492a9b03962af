/* CIFAR-10 and -100: binary files and pickles as Python 2 (which the published ones are from) and
 * Python 3 write them, and what is said of broken ones. */
#include "facula/facula.h"
#include "folder.h"

enum { IMAGE = 3072 };
static void put(const char *name, const void *data, size_t n) {
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static uint8_t pixel(int image, int i) { return (uint8_t)((image * 7 + i * 3) % 256); }

static void check(const fac_dataset *d, int64_t n, const int *labels) {
    assert_true(d->count == n && d->item.n == 3 && d->item.d[0] == 3 && d->item.d[1] == 32);
    for (int64_t k = 0; k < n; k++) {
        assert_int_equal(d->labels[k], labels[k]);
        for (int i = 0; i < IMAGE; i++) assert_int_equal(d->bytes[k * IMAGE + i], pixel((int)k, i));
    }
}

typedef fac_status reader(const char *folder, bool train, fac_dataset *out, fac_error *error);

static void refused(reader *read, bool train, fac_status want, const char *says) {
    fac_dataset d = { 0 };
    fac_error e = { 0 };
    assert_int_equal(read(folder, train, &d, &e), want);
    assert_null(d.memory);
    if (!strstr(e.text, says)) fail_msg("\"%s\" does not say \"%s\"", e.text, says);
}

/* ---- binary ---- */

static void binary_files_are_read(void **state) {
    (void)state;
    static uint8_t records[2 * (IMAGE + 2)];
    for (int head = 1; head <= 2; head++) { /* CIFAR-10, CIFAR-100 */
        reader *read = head == 1 ? fac_dataset_cifar10 : fac_dataset_cifar100;
        const char *name = head == 1 ? "test_batch.bin" : "test.bin";
        const int labels[2] = { 7, head == 1 ? 9 : 99 }, each = IMAGE + head;
        for (int k = 0; k < 2; k++) {
            records[k * each] = 3;
            records[k * each + head - 1] = (uint8_t)labels[k];
            for (int i = 0; i < IMAGE; i++) records[k * each + head + i] = pixel(k, i);
        }
        put(name, records, 2 * (size_t)each);
        fac_dataset d = { 0 };
        OK(read(folder, false, &d, err));
        check(&d, 2, labels);
        assert_int_equal(d.classes, head == 1 ? 10 : 100);
        assert_string_equal(d.class_names[labels[1]], head == 1 ? "truck" : "worm");
        for (int c = 1; c < d.classes; c++)
            assert_true(strcmp(d.class_names[c - 1], d.class_names[c]) < 0);
        fac_dataset_free(&d);
        put(name, records, 2 * (size_t)each - 5);
        refused(read, false, FAC_E_FORMAT,
                head == 1 ? "test_batch.bin: record 1 is cut off"
                          : "test.bin: record 1 is cut off");
        records[each + head - 1] = 100;
        put(name, records, 2 * (size_t)each);
        refused(read, false, FAC_E_FORMAT, "record 1 has label 100");
        unlink(path_of(name));
    }
    refused(fac_dataset_cifar10, true, FAC_E_IO, "data_batch_1");
}

/* ---- python ---- */

typedef struct bytes {
    uint8_t at[4 * IMAGE + 1024];
    size_t n;
} bytes;

static void add(bytes *b, const void *data, size_t n) {
    assert_true(b->n + n <= sizeof b->at);
    memcpy(b->at + b->n, data, n);
    b->n += n;
}
static void op(bytes *b, const char *text) { add(b, text, strlen(text)); }
static void byte(bytes *b, int x) { add(b, &(uint8_t){ (uint8_t)x }, 1); }
static void short_text(bytes *b, const char *s) { /* SHORT_BINSTRING */
    op(b, "U");
    byte(b, (int)strlen(s));
    op(b, s);
}
static void number(bytes *b, unsigned x) { /* BININT2 */
    op(b, "M");
    byte(b, (int)(x & 255));
    byte(b, (int)(x >> 8));
}

typedef struct form {
    bool python3;
    int images, labels, columns;
    const char *dtype, *order, *key;
    int label;
    size_t cut;
} form;

/* What cPickle of Python 2 writes: its memo counts from 1; and Python 3's way to say bytes in
 * protocol 2, as Latin-1 text. */
static void put_pickle(const char *name, const form *f) {
    static bytes b, raw;
    b.n = raw.n = 0;
    for (int i = 0; i < f->images * f->columns; i++) {
        const uint8_t x = pixel(i / f->columns, i % f->columns);
        if (f->python3 && x > 127) byte(&raw, 0xc0 | x >> 6);
        byte(&raw, f->python3 && x > 127 ? 0x80 | (x & 63) : x);
    }
    op(&b, "\x80\x02}q\x01(");
    short_text(&b, "batch_label");
    op(&b, "q\x02");
    short_text(&b, "testing batch 1 of 1");
    op(&b, "q\x03");
    short_text(&b, f->key ? f->key : "labels");
    op(&b, "q\x04]q\x05(");
    for (int k = 0; k < f->labels; k++) {
        op(&b, "K");
        byte(&b, k == 1 ? f->label : 7);
    }
    op(&b, "e");
    short_text(&b, "data");
    op(&b, f->python3 ? "cnumpy._core.multiarray\n_reconstruct\n"
                      : "cnumpy.core.multiarray\n_reconstruct\n");
    op(&b, "q\x06"
           "cnumpy\nndarray\nq\x07");
    add(&b, "K\0\x85", 3);
    short_text(&b, "b");
    op(&b, "\x87Rq\x08(K\x01");
    number(&b, (unsigned)f->images);
    number(&b, (unsigned)f->columns);
    op(&b, "\x86"
           "cnumpy\ndtype\nq\x09");
    short_text(&b, f->dtype);
    add(&b, "K\0K\x01\x87R(K\x03", 9);
    short_text(&b, f->order);
    add(&b, "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89", 18);
    op(&b, f->python3 ? "c_codecs\nencode\nX" : "T");
    for (int k = 0; k < 4; k++) byte(&b, (int)(raw.n >> 8 * k & 255));
    add(&b, raw.at, raw.n);
    if (f->python3) {
        op(&b, "X");
        add(&b, "\x06\0\0\0latin1\x86R", 12);
    }
    op(&b, "tbu.");
    put(name, b.at, f->cut ? b.n - f->cut : b.n);
}

static void pickles_are_read(void **state) {
    (void)state;
    const int labels[2] = { 7, 9 };
    for (int python3 = 0; python3 < 2; python3++)
        for (int fine = 0; fine < 2; fine++) {
            fac_dataset d = { 0 };
            put_pickle(fine ? "test" : "test_batch",
                       &(form){ .python3 = python3,
                                .images = 2,
                                .labels = 2,
                                .columns = IMAGE,
                                .dtype = "u1",
                                .order = "|",
                                .key = fine ? "fine_labels" : "labels",
                                .label = 9 });
            OK((fine ? fac_dataset_cifar100 : fac_dataset_cifar10)(folder, false, &d, err));
            check(&d, 2, labels);
            fac_dataset_free(&d);
        }
}

static void broken_pickles_are_refused(void **state) {
    (void)state;
    static const struct {
        form f;
        const char *says;
    } wrong[] = {
        { { .images = 2, .labels = 2, .columns = IMAGE, .dtype = "u1", .order = "|", .label = 10 },
          "record 1 has label 10" },
        { { .images = 2, .labels = 1, .columns = IMAGE, .dtype = "u1", .order = "|", .label = 1 },
          "2 images and 1 labels" },
        { { .images = 2, .labels = 2, .columns = 100, .dtype = "u1", .order = "|", .label = 1 },
          "no dict with \"data\"" },
        { { .images = 2, .labels = 2, .columns = IMAGE, .dtype = "u2", .order = "<", .label = 1 },
          "not as many bytes" },
        { { .images = 2, .labels = 2, .columns = IMAGE, .dtype = "u1", .order = ">", .label = 1 },
          "big-endian" },
        { { .images = 2, .labels = 2, .columns = IMAGE, .dtype = "O8", .order = "|", .label = 1 },
          "no numbers" },
        { { .images = 2,
            .labels = 2,
            .columns = IMAGE,
            .dtype = "u1",
            .order = "|",
            .label = 1,
            .key = "marks" },
          "\"labels\"" },
        { { .images = 2,
            .labels = 2,
            .columns = IMAGE,
            .dtype = "u1",
            .order = "|",
            .label = 1,
            .cut = 300 },
          "truncated" }
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        put_pickle("test_batch", &wrong[k].f);
        refused(fac_dataset_cifar10, false, k == 4 || k == 5 ? FAC_E_UNSUPPORTED : FAC_E_FORMAT,
                wrong[k].says);
        fac_error e = { 0 };
        fac_dataset d = { 0 };
        assert_int_not_equal(fac_dataset_cifar10(folder, false, &d, &e), FAC_OK);
        assert_non_null(strstr(e.text, "test_batch"));
    }
    put("test_batch",
        "\x80\x02"
        "cos\nsystem\n.",
        14);
    refused(fac_dataset_cifar10, false, FAC_E_UNSUPPORTED, "os.system");
    unlink(path_of("test_batch"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binary_files_are_read),
        cmocka_unit_test(pickles_are_read),
        cmocka_unit_test(broken_pickles_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
