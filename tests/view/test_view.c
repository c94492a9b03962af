/* src/view: event files record by record, histograms, grids of pictures, axes, charts as SVG, PNG
 * and text. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "allocations.h"
#include "base/rng.h"
#include "facula/facula.h"
#include "onnx/proto.h"
#include "view/axis.h"
#include "view/view_internal.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

static char folder[] = "/tmp/facula-view-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* All of a file, with a zero after it. */
static char *contents(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *data = calloc(1, 1 << 22);
    *n = fread(data, 1, (1 << 22) - 1, f);
    fclose(f);
    return data;
}

static fac_tensor *floats(fac_dims dims, const float *x) {
    fac_tensor *t = NULL;
    OK(fac_tensor_borrow(FAC_F32, dims, NULL, x, NULL, NULL, &t, err));
    return t;
}

/* ---- event files ---- */

/* Numbers from RFC 3720 B.4 and from TensorFlow's own records. */
static void checksums_are_those_of_the_standard(void **state) {
    (void)state;
    const uint8_t zeros[32] = { 0 }, length[8] = { 24 };
    assert_int_equal(fac_crc32c("123456789", 9), 0xE3069283u);
    assert_int_equal(fac_crc32c(zeros, 32), 0x8A9136AAu);
    assert_int_equal(fac_crc32c_masked("123456789", 9), 0xC78AB0E5u);
    assert_int_equal(fac_crc32c_masked("", 0), 0xA282EAD8u);
    assert_int_equal(fac_crc32c_masked(length, 8), 0x224B7FA3u);
}

/* The first record of a file at time 1.0, as TensorFlow writes it. */
static void records_are_framed(void **state) {
    (void)state;
    static const uint8_t want[] = { 0x18, 0,    0,    0,   0,   0,   0,    0,    0xa3, 0x7f,
                                    0x4b, 0x22, 0x09, 0,   0,   0,   0,    0,    0,    0xf0,
                                    0x3f, 0x1a, 0x0d, 'b', 'r', 'a', 'i',  'n',  '.',  'E',
                                    'v',  'e',  'n',  't', ':', '2', 0x86, 0xbf, 0x57, 0x7a };
    fac_proto event = { 0 };
    fac_text record = { 0 };
    fac_put_double(&event, 1, 1.0);
    fac_put_text(&event, 3, "brain.Event:2");
    fac_record_add(&record, event.s, event.n);
    assert_int_equal(record.n, sizeof want);
    assert_memory_equal(record.s, want, sizeof want);
    fac_text_free(&event);
    fac_text_free(&record);
}

/* Protobuf's own examples (https://protobuf.dev/programming-guides/encoding): 150 in field 1,
 * "testing" in field 2. */
static void fields_are_encoded(void **state) {
    (void)state;
    static const uint8_t want[] = { 0x08, 0x96, 0x01, 0x12, 0x07, 't',  'e',  's',  't',
                                    'i',  'n',  'g',  0x1a, 0x03, 0x08, 0x96, 0x01, 0x20,
                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                    0x01, 0x2d, 0,    0,    0x80, 0x3f, 0x32, 0x08, 0,
                                    0,    0,    0,    0,    0,    0,    0xc0 };
    fac_proto m = { 0 }, inner = { 0 };
    fac_put_int(&m, 1, 150);
    fac_put_text(&m, 2, "testing");
    fac_put_int(&inner, 1, 150);
    fac_put_message(&m, 3, &inner);
    fac_put_int(&m, 4, -1);
    fac_put_float(&m, 5, 1);
    fac_put_doubles(&m, 6, 1, (const double[]){ -2 });
    assert_null(inner.s);
    assert_int_equal(m.n, sizeof want);
    assert_memory_equal(m.s, want, sizeof want);
    fac_text_free(&m);
}

static uint64_t little_endian(const char *p, int bytes) {
    uint64_t x = 0;
    for (int k = bytes; k-- > 0;) x = x << 8 | (uint8_t)p[k];
    return x;
}

/* How many records a file holds; all of them must be sound, and `last` is the payload of the last
 * one. */
static int records(const char *data, size_t n, fac_bytes *last) {
    int count = 0;
    for (size_t at = 0; at < n; count++) {
        size_t length = (size_t)little_endian(data + at, 8);
        assert_int_equal(little_endian(data + at + 8, 4), fac_crc32c_masked(data + at, 8));
        assert_true(length <= n - at - 16);
        *last = (fac_bytes){ (const uint8_t *)data + at + 12, length };
        assert_int_equal(little_endian(data + at + 12 + length, 4),
                         fac_crc32c_masked(data + at + 12, length));
        at += 16 + length;
    }
    return count;
}

static void files_are_appended_to(void **state) {
    (void)state;
    char path[4096], deep[200];
    size_t n;
    fac_bytes last;
    fac_events *a = NULL, *b = NULL;
    snprintf(deep, sizeof deep, "%s/runs/deep/one", folder);
    OK(fac_events_open(deep, &a, err));
    snprintf(path, sizeof path, "%s", fac_events_path(a));
    assert_non_null(strstr(path, "/events.out.tfevents."));
    char *data = contents(path, &n);
    assert_int_equal(records(data, n, &last), 1); /* the version is there at once */
    free(data);
    OK(fac_events_scalar(a, "loss", 7, 0.5, err));
    OK(fac_events_text(a, "note", 0, "*hello*", err));
    OK(fac_events_scalar(a, "loss", 8, 0.25, err));
    OK(fac_events_flush(a, err));
    data = contents(path, &n);
    assert_int_equal(records(data, n, &last), 4);
    static const uint8_t tail[] = { 0x10, 8,   0x2a, 13,   0x0a, 11, 0x0a, 4,   'l',
                                    'o',  's', 's',  0x15, 0,    0,  0x80, 0x3e };
    assert_memory_equal(last.p + last.n - sizeof tail, tail,
                        sizeof tail); /* step 8, summary { value { tag, 0.25f } } */
    free(data);
    OK(fac_events_open(deep, &b, err)); /* the same second, the same process: another file */
    assert_string_not_equal(path, fac_events_path(b));
    OK(fac_events_close(a, err));
    OK(fac_events_close(b, err));
    fac_error e = { 0 };
    assert_int_equal(fac_events_open("/dev/null/runs", &a, &e), FAC_E_IO);
    assert_non_null(strstr(e.text, "/dev/null/runs"));
}

/* Every name of a GraphDef is its own, and every input is one of them. */
typedef struct names {
    char text[64][64];
    int n;
    bool inputs;
} names;

static bool take_name(void *self, uint64_t bits, fac_bytes b) {
    names *s = self;
    char name[64];
    (void)bits;
    snprintf(name, sizeof name, "%.*s", (int)b.n, (const char *)b.p);
    if (s->inputs) name[strcspn(name, ":")] = 0;
    bool known = false;
    for (int k = 0; k < s->n; k++) known |= !strcmp(s->text[k], name);
    if (known != s->inputs)
        fail_msg("%s %s", name, known ? "is there twice" : "is an input, and is no node");
    if (!s->inputs) strcpy(s->text[s->n++], name);
    return true;
}

static bool take_node(void *self, uint64_t bits, fac_bytes b) {
    (void)bits;
    const names *s = self;
    OK(fac_proto_each(b, s->inputs ? 3 : 1, FAC_PROTO_WINDOWS, take_name, self, err));
    return true;
}

static void graphs_have_one_name_a_node(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 1, 8, 8));
    for (int k = 0; k < 2;
         k++) { /* the same scope twice, and a parameter that is called like a node */
        fac_graph_push(g, "block.a");
        x = fac_relu(fac_add(x, fac_number(g, FAC_F32, 1)));
        fac_graph_pop(g);
    }
    x = fac_nn_conv2d(x, "block.conv", 4, 3, NULL);
    fac_value *parts[2];
    fac_split(x, 1, 2, parts);
    fac_output(g, "x", fac_relu(parts[1]));
    OK(fac_graph_check(g, err));
    fac_proto def = { 0 };
    fac_graph_def(g, &def);
    assert_false(def.failed);
    names all = { 0 };
    fac_bytes bytes = { (const uint8_t *)def.s, def.n };
    OK(fac_proto_each(bytes, 1, FAC_PROTO_WINDOWS, take_node, &all, err));
    assert_true(all.n >= 10);
    bool found = false;
    for (int k = 0; k < all.n; k++) found |= !strcmp(all.text[k], "block/conv/weight");
    assert_true(found);
    all.inputs = true;
    OK(fac_proto_each(bytes, 1, FAC_PROTO_WINDOWS, take_node, &all, err));
    fac_text_free(&def);
    fac_graph_free(g);
}

/* ---- histograms ---- */

static void histograms_count(void **state) {
    (void)state;
    fac_histogram h;
    float x[61];
    for (int i = 0; i <= 60; i++)
        x[i] = (float)i; /* two in each bucket, three in the last, closed one */
    fac_tensor *t = floats(fac_shape(61), x);
    OK(fac_histogram_of(t, &h, err));
    assert_int_equal(h.buckets, FAC_BUCKETS);
    assert_true(h.min == 0 && h.max == 60 && h.sum == 1830 && h.sum_squares == 73810 &&
                h.count == 61 && !h.others);
    for (int k = 0; k < FAC_BUCKETS; k++) {
        assert_true(h.limit[k] == 2 * (k + 1));
        assert_int_equal(h.in[k], k + 1 < FAC_BUCKETS ? 2 : 3);
    }
    x[3] = NAN;
    x[4] = INFINITY;
    OK(fac_histogram_of(t, &h, err));
    assert_true(h.count == 59 && h.others == 2 && h.in[1] == 1 && h.in[2] == 1 && h.max == 60);
    fac_tensor_free(t);

    const float same[3] = { 2.5f, 2.5f, 2.5f }, none[2] = { NAN, -INFINITY };
    t = floats(fac_shape(3), same);
    OK(fac_histogram_of(t, &h, err));
    assert_true(h.buckets == 1 && h.in[0] == 3 && h.limit[0] == 2.5 && h.min == 2.5);
    fac_tensor_free(t);
    t = floats(fac_shape(2), none);
    OK(fac_histogram_of(t, &h, err));
    assert_true(h.buckets == 0 && h.count == 0 && h.others == 2 && h.min == 0 && h.max == 0);
    fac_tensor_free(t);
    t = floats(fac_shape(0), none);
    OK(fac_histogram_of(t, &h, err));
    assert_true(h.buckets == 0 && !h.others);
    fac_tensor_free(t);

    const double far[4] = { -1.7e308, 1.7e308, 0, 1 }; /* the span is infinite */
    OK(fac_tensor_borrow(FAC_F64, fac_shape(4), NULL, far, NULL, NULL, &t, err));
    OK(fac_histogram_of(t, &h, err));
    assert_true(h.buckets == 1 && h.in[0] == 4);
    fac_tensor_free(t);
}

/* Random numbers of any size: nothing is lost, and what a bucket counts lies in it. */
static void histograms_lose_nothing(void **state) {
    (void)state;
    enum { N = 5000 };
    const uint64_t seed = 11;
    printf("seed %llu\n", (unsigned long long)seed);
    float *x = malloc(N * sizeof *x);
    for (int scale = -20; scale <= 20; scale += 10) {
        fac_histogram h;
        for (int i = 0; i < N; i++)
            x[i] =
                (float)ldexp(fac_random_normal(seed, (uint64_t)(scale + 100), (uint64_t)i), scale);
        fac_tensor *t = floats(fac_shape(N), x);
        OK(fac_histogram_of(t, &h, err));
        int64_t total = 0;
        for (int k = 0; k < h.buckets; k++) {
            int64_t in = 0;
            double left = k ? h.limit[k - 1] : h.min, slack = 1e-9 * (h.max - h.min);
            double right = k == h.buckets - 1 ? INFINITY : h.limit[k] - slack;
            for (int i = 0; i < N; i++) in += x[i] >= left + slack && x[i] < right;
            assert_true(h.in[k] >= in && h.in[k] <= in + 2);
            total += h.in[k];
        }
        assert_int_equal(total, N);
        fac_tensor_free(t);
    }
    free(x);
}

/* ---- pictures ---- */

static void grids_show_every_picture(void **state) {
    (void)state;
    const float x[] = {
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10.2f
    }; /* [3,1,2,2], least 0, largest 10.2: 25 a unit */
    const uint8_t paper = 255;
    fac_image image = { 0 };
    fac_tensor *t = floats(fac_shape(3, 1, 2, 2), x);
    OK(fac_image_grid(t, &(fac_grid){ .columns = 2, .zoom = 3 }, &image, err));
    assert_true(image.width == 2 + 2 * (6 + 2) && image.height == 2 + 2 * (6 + 2));
    const struct {
        int x, y, level;
    } want[] = { { 0, 0, paper }, { 2, 2, 0 },    { 4, 4, 0 },      { 5, 2, 25 },
                 { 2, 5, 50 },    { 7, 7, 75 },   { 8, 2, paper },  { 10, 2, 100 },
                 { 2, 10, 200 },  { 7, 15, 255 }, { 10, 10, paper } };
    for (size_t k = 0; k < sizeof want / sizeof *want; k++)
        for (int c = 0; c < 3; c++)
            assert_int_equal(image.rgb[3 * (want[k].y * image.width + want[k].x) + c],
                             want[k].level);
    fac_image_free(&image);
    OK(fac_image_grid(t, &(fac_grid){ .most = 1, .std = { 0.05 }, .mean = { 0.1 } }, &image,
                      err)); /* x 12.75 + 25.5 */
    assert_true(image.width == 6 && image.height == 6);
    assert_int_equal(image.rgb[3 * (3 * 6 + 3)], 64);
    fac_image_free(&image);
    fac_tensor_free(t);

    t = floats(fac_shape(1, 3, 2, 2), x); /* three channels are one picture in colour */
    OK(fac_image_grid(t, NULL, &image, err));
    assert_true(image.width == 6);
    const uint8_t *p = image.rgb + 3 * (2 * 6 + 2);
    assert_true(p[0] == 0 && p[1] == 100 && p[2] == 200);
    fac_image_free(&image);
    fac_error e = { 0 };
    assert_int_equal(fac_image_grid(t, &(fac_grid){ .zoom = 1 << 20 }, &image, &e), FAC_E_ARGUMENT);
    fac_tensor_free(t);
    t = floats(fac_shape(3, 4), x);
    assert_int_equal(fac_image_grid(t, NULL, &image, &e), FAC_E_SHAPE);
    fac_tensor_free(t);
}

/* ---- lost memory ---- */

static fac_status everything(fac_graph *g, fac_tensor *t, fac_error *e) {
    fac_events *f;
    fac_image image = { 0 };
    fac_status status = fac_events_open(folder, &f, e);
    if (status) return status;
    const fac_setting settings[] = { { "lr", NULL, 0.1 }, { "model", "mlp", 0 } };
    if ((status = fac_events_graph(f, g, e)) || (status = fac_events_histogram(f, "h", 1, t, e)) ||
        (status = fac_events_start(f, 2, settings, e)) ||
        (status = fac_events_text(f, "t", 1, "text", e)) ||
        (status = fac_image_grid(t, NULL, &image, e)) || (status = fac_events_end(f, true, e))) {
        fac_events_close(f, NULL);
        fac_image_free(&image);
        return status;
    }
    fac_image_free(&image);
    return fac_events_close(f, e);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const float x[12] = { 1, 2 };
    fac_tensor *t = floats(fac_shape(3, 1, 2, 2), x);
    fac_graph *g = fac_graph_new();
    fac_output(g, "y", fac_nn_linear(fac_input(g, "x", FAC_F32, fac_shape(2, 3)), "fc", 2));
    OK(fac_graph_check(g, err));
    fac_status status = FAC_E_NOMEM;
    for (long k = 0; status; k++) {
        fac_error e = { 0 };
        allocations_left = k;
        status = everything(g, t, &e);
        allocations_left = -1;
        if (status && status != FAC_E_NOMEM) fail_msg("allocation %ld: %s", k, e.text);
        if (status) assert_true(e.text[0]);
        assert_true(k < 2000);
    }
    fac_tensor_free(t);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(checksums_are_those_of_the_standard),
                                        cmocka_unit_test(records_are_framed),
                                        cmocka_unit_test(fields_are_encoded),
                                        cmocka_unit_test(files_are_appended_to),
                                        cmocka_unit_test(graphs_have_one_name_a_node),
                                        cmocka_unit_test(histograms_count),
                                        cmocka_unit_test(histograms_lose_nothing),
                                        cmocka_unit_test(grids_show_every_picture),
                                        cmocka_unit_test(every_allocation_may_fail) };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
