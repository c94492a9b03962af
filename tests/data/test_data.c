/* Data sets: IDX and .gz, folders of photos, toys, splits; batches, their order and augmentation;
 * broken files. */
#include <math.h>
#include <sys/stat.h>
#ifdef FAC_HAVE_ZLIB
#include <zlib.h>
#endif
#include "facula/facula.h"
#include "folder.h"

static void put(const char *name, const void *data, size_t n) {
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

enum { IMAGES = 5, SIDE = 4 };

/* Five images of 4 x 4: pixel k of image i is 16 i + k; label i + 2. */
static void put_mnist(const char *images_name, const char *labels_name) {
    unsigned char images[16 + IMAGES * SIDE * SIDE] = { 0, 0, 8, 3,    0, 0, 0, IMAGES,
                                                        0, 0, 0, SIDE, 0, 0, 0, SIDE };
    unsigned char labels[8 + IMAGES] = { 0, 0, 8, 1, 0, 0, 0, IMAGES };
    for (int i = 0; i < IMAGES * SIDE * SIDE; i++) images[16 + i] = (unsigned char)i;
    for (int i = 0; i < IMAGES; i++) labels[8 + i] = (unsigned char)(i + 2);
    put(images_name, images, sizeof images);
    put(labels_name, labels, sizeof labels);
}

static void mnist_is_read(void **state) {
    (void)state;
    fac_dataset d = { 0 };
    put_mnist("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    OK(fac_dataset_mnist(folder, false, &d, err));
    assert_int_equal(d.count, IMAGES);
    assert_int_equal(d.classes, 10);
    assert_true(d.item.n == 3 && d.item.d[0] == 1 && d.item.d[1] == SIDE && d.item.d[2] == SIDE);
    for (int i = 0; i < IMAGES * SIDE * SIDE; i++) assert_int_equal(d.bytes[i], i);
    for (int i = 0; i < IMAGES; i++) assert_int_equal(d.labels[i], i + 2);
    fac_dataset_free(&d);
}

static void refused(bool train, fac_status want, const char *says) {
    fac_dataset d = { 0 };
    fac_error e = { 0 };
    assert_int_equal(fac_dataset_mnist(folder, train, &d, &e), want);
    assert_null(d.memory);
    if (!strstr(e.text, says)) fail_msg("\"%s\" does not say \"%s\"", e.text, says);
}

static void broken_idx_files_are_refused(void **state) {
    (void)state;
    unsigned char head[16] = { 0,    0,    8,    3,    0xff, 0xff, 0xff, 0xff,
                               0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
    const char *name = "t10k-images-idx3-ubyte";
    refused(true, FAC_E_IO, "train-images-idx3-ubyte.gz");
    put(name, head, sizeof head);
    refused(false, FAC_E_FORMAT, "there are 0");
    head[3] = 2;
    put(name, head, sizeof head);
    refused(false, FAC_E_FORMAT, "3 dims");
    put(name, head, 3);
    refused(false, FAC_E_FORMAT, "IDX");
    put_mnist(name, "t10k-labels-idx1-ubyte");
    const unsigned char labels[13] = { 0, 0, 8, 1, 0, 0, 0, 5, 1, 2, 10, 3, 4 };
    put("t10k-labels-idx1-ubyte", labels, sizeof labels);
    refused(false, FAC_E_FORMAT, "t10k-labels-idx1-ubyte: record 2 has label 10");
    put("t10k-labels-idx1-ubyte", labels, sizeof labels - 1);
    refused(false, FAC_E_FORMAT, "t10k-labels-idx1-ubyte: record 4 of 5 is cut off");
    unsigned char images[16 + IMAGES * SIDE * SIDE - 20] = { 0, 0, 8, 3,    0, 0, 0, IMAGES,
                                                             0, 0, 0, SIDE, 0, 0, 0, SIDE };
    put(name, images, sizeof images);
    refused(false, FAC_E_FORMAT, "t10k-images-idx3-ubyte: record 3 of 5 is cut off");
    put_mnist(name, "t10k-labels-idx1-ubyte");
    const unsigned char few[11] = { 0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3 };
    put("t10k-labels-idx1-ubyte", few, sizeof few);
    refused(false, FAC_E_FORMAT, "5 images and 3 labels");
}

#ifdef FAC_HAVE_ZLIB
static void packed_files_are_read(void **state) {
    (void)state;
    unsigned char images[16 + 300000] = { 0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 100, 0, 0, 3, 232 },
                              packed[4096];
    const unsigned char labels[11] = { 0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3 };
    for (int i = 0; i < 300000; i++) images[16 + i] = (unsigned char)(i / 1000);
    gzFile f = gzopen(path_of("train-images-idx3-ubyte.gz"), "wb");
    assert_int_equal(gzwrite(f, images, sizeof images), sizeof images);
    gzclose(f);
    put("train-labels-idx1-ubyte", labels, sizeof labels);
    fac_dataset d = { 0 };
    OK(fac_dataset_mnist(folder, true, &d, err));
    assert_true(d.count == 3 && d.item.d[1] == 100 && d.item.d[2] == 1000);
    for (int i = 0; i < 300000; i++) assert_int_equal(d.bytes[i], (unsigned char)(i / 1000));
    fac_dataset_free(&d);
    FILE *cut = fopen(path_of("train-images-idx3-ubyte.gz"), "rb");
    size_t n = fread(packed, 1, sizeof packed, cut);
    fclose(cut);
    assert_true(n > 100);
    put("train-images-idx3-ubyte.gz", packed, n - 20);
    refused(true, FAC_E_FORMAT, "cut off");
    packed[n / 2] ^= 0x55;
    put("train-images-idx3-ubyte.gz", packed, n);
    refused(true, FAC_E_FORMAT, "broken");
}

static void append_member(const char *name, const void *data, size_t n) {
    gzFile f = gzopen(path_of(name), "ab");
    if (n) assert_int_equal(gzwrite(f, data, (unsigned)n), n);
    gzclose(f);
}

/* As `cat a.gz b.gz`, bgzip and pigz make them: one member after the other, one of them empty,
 * zeros after the last. */
static void packed_members_are_one_file(void **state) {
    (void)state;
    const char *name = "train-images-idx3-ubyte.gz";
    unsigned char images[16 + 240] = { 0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 8, 0, 0, 0, 10 };
    unsigned char packed[2048] = { 0 };
    const unsigned char labels[11] = { 0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3 };
    for (int i = 0; i < 240; i++) images[16 + i] = (unsigned char)(i * 7);
    put("train-labels-idx1-ubyte", labels, sizeof labels);
    put(name, "", 0);
    append_member(name, images, 5);
    append_member(name, "", 0);
    append_member(name, images + 5, 100);
    FILE *f = fopen(path_of(name), "rb");
    const size_t first = fread(packed, 1, sizeof packed, f);
    fclose(f);
    append_member(name, images + 105, sizeof images - 105);
    f = fopen(path_of(name), "rb");
    const size_t n = fread(packed, 1, sizeof packed / 2, f);
    fclose(f);
    fac_dataset d = { 0 };
    for (size_t padding = 0; padding < 600; padding += 599) {
        put(name, packed, n + padding);
        OK(fac_dataset_mnist(folder, true, &d, err));
        assert_int_equal(d.count, 3);
        for (int i = 0; i < 240; i++) assert_int_equal(d.bytes[i], (unsigned char)(i * 7));
        fac_dataset_free(&d);
    }
    for (size_t cut = first + 1; cut < n; cut++) {
        put(name, packed, cut);
        refused(true, FAC_E_FORMAT, cut < first + 3 ? "no gzip data" : "cut off");
    }
    packed[n + 3] = 'x';
    put(name, packed, n + 5);
    char says[64];
    snprintf(says, sizeof says, "byte %zu and those after it are no gzip data", n + 3);
    refused(true, FAC_E_FORMAT, says);
}
#endif

static void folders_of_photos_are_read(void **state) {
    (void)state;
    static const char *const files[] = { "photos/b/1.ppm", "photos/b/2.ppm", "photos/a/x.ppm" };
    mkdir(path_of("photos"), 0700);
    mkdir(path_of("photos/a"), 0700);
    mkdir(path_of("photos/b"), 0700);
    for (int i = 0; i < 3; i++) {
        uint8_t rgb[12] = { 0 };
        memset(rgb, 10 * (i + 1), sizeof rgb);
        OK(fac_image_save(&(fac_image){ 2, 2, rgb }, path_of(files[i]), err));
    }
    put("photos/b/readme.txt", "no photo", 8);
    fac_dataset d = { 0 };
    OK(fac_dataset_images(path_of("photos"), 3, 4, &d, err));
    assert_true(d.count == 3 && d.classes == 2 && d.item.d[0] == 3 && d.item.d[1] == 3 &&
                d.item.d[2] == 4);
    assert_string_equal(d.class_names[0], "a");
    assert_string_equal(d.class_names[1], "b");
    assert_true(d.labels[0] == 0 && d.labels[1] == 1 && d.labels[2] == 1);
    assert_true(d.bytes[0] == 30 && d.bytes[36] == 10 && d.bytes[107] == 20);
    fac_dataset_free(&d);
    fac_error e = { 0 };
    put("photos/a/broken.png", "\x89PNG\r\n\x1a\n", 8);
    assert_int_not_equal(fac_dataset_images(path_of("photos"), 3, 4, &d, &e), FAC_OK);
    assert_non_null(strstr(e.text, "broken.png"));
    assert_int_equal(fac_dataset_images(path_of("photos/a"), 3, 4, &d, &e), FAC_E_FORMAT);
    assert_int_equal(fac_dataset_images(path_of("nowhere"), 3, 4, &d, &e), FAC_E_IO);
    mkdir(path_of("parts"), 0700);
    mkdir(path_of("parts/train"), 0700);
    mkdir(path_of("parts/val"), 0700);
    assert_int_equal(fac_dataset_images(path_of("parts"), 3, 4, &d, &e), FAC_E_FORMAT);
    assert_non_null(strstr(e.text, "parts: no photos in its 2 folders: each is a class"));
    mkdir(path_of("parts/train/a"), 0700);
    mkdir(path_of("parts/train/b"), 0700);
    assert_int_equal(fac_dataset_images(path_of("parts"), 3, 4, &d, &e), FAC_E_FORMAT);
    assert_non_null(strstr(e.text, "/parts/train are 2 folders: is that the data set?"));
}

/* Edges stay, what lies between is bilinear; grey becomes three equal channels; labels and classes
 * stay. */
static void images_are_resized(void **state) {
    (void)state;
    fac_dataset d = { 0 }, big = { 0 }, same = { 0 };
    fac_error e = { 0 };
    put_mnist("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    OK(fac_dataset_mnist(folder, false, &d, err));
    const int64_t height = d.item.d[1], width = d.item.d[2], plane = 4 * height * width;
    OK(fac_dataset_resize(&d, 1, (int)height, (int)width, &same, err));
    assert_memory_equal(same.bytes, d.bytes, (size_t)(d.count * height * width));
    OK(fac_dataset_resize(&d, 3, (int)(2 * height), (int)(2 * width), &big, err));
    assert_true(big.count == d.count && big.classes == d.classes && big.std[2] == big.std[0] &&
                big.mean[1] == d.mean[0]);
    for (int64_t i = 0; i < d.count; i++) {
        const uint8_t *small = d.bytes + i * height * width, *large = big.bytes + 3 * i * plane;
        assert_int_equal(big.labels[i], d.labels[i]);
        assert_int_equal(large[0], small[0]);
        assert_int_equal(large[plane - 1], small[height * width - 1]);
        assert_memory_equal(large, large + plane, (size_t)plane);
        assert_memory_equal(large, large + 2 * plane, (size_t)plane);
        const double between =
            0.75 * small[0] +
            0.25 * small[1]; /* a quarter of a pixel after the first one's middle */
        assert_true(fabs(large[1] - between) <= 1);
    }
    assert_int_equal(fac_dataset_resize(&big, 1, 5, 5, &same, &e), FAC_E_ARGUMENT);
    assert_int_equal(fac_dataset_resize(&d, 1, 0, 5, &same, &e), FAC_E_ARGUMENT);
    fac_dataset_free(&d);
    fac_dataset_free(&big);
    fac_dataset_free(&same);
    OK(fac_dataset_toy("xor", 5, 3, &d, err));
    assert_int_equal(fac_dataset_resize(&d, 1, 5, 5, &same, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "no images"));
    fac_dataset_free(&d);
}

static void toys_have_their_shapes(void **state) {
    (void)state;
    static const char *const names[] = { "simple", "diag", "split", "xor", "circle", "spiral" };
    static const double share[] = {
        0.5, 0.125, 0.4, 0.5, 1 - 0.1 * 3.14159, 0.5
    }; /* area of class 1 */
    for (int k = 0; k < 6; k++) {
        fac_dataset d = { 0 };
        OK(fac_dataset_toy(names[k], 4000, 3, &d, err));
        double ones = 0;
        for (int i = 0; i < 4000; i++) {
            ones += (double)d.labels[i];
            float x = d.values[2 * i], y = d.values[2 * i + 1];
            assert_true(x > -0.02f && x < 1.02f && y > -0.02f && y < 1.02f);
            if (k == 3) assert_int_equal(d.labels[i], (x < 0.5f) != (y < 0.5f));
        }
        assert_true(ones / 4000 > share[k] - 0.03 && ones / 4000 < share[k] + 0.03);
        fac_dataset_free(&d);
    }
    fac_dataset d = { 0 };
    fac_error e = { 0 };
    OK(fac_dataset_toy("spiral", 50, 3, &d,
                       err)); /* MiniTorch's: t = 10 * 5 / 25 for its first point */
    assert_true(d.values[0] > 0.45838 && d.values[0] < 0.45839 && d.values[1] > 0.59092 &&
                d.values[1] < 0.59094);
    fac_dataset_free(&d);
    assert_int_equal(fac_dataset_toy("moons", 50, 3, &d, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "spiral"));
}

static void a_split_keeps_every_sample(void **state) {
    (void)state;
    fac_dataset d = { 0 }, a = { 0 }, b = { 0 };
    char seen[101] = { 0 };
    OK(fac_dataset_toy("xor", 101, 3, &d, err));
    OK(fac_dataset_split(&d, 0.2, 1, &a, &b, err));
    assert_true(a.count == 81 && b.count == 20 && a.classes == 2);
    for (int64_t i = 0; i < 101; i++) {
        const fac_dataset *from = i < 81 ? &a : &b;
        int64_t k = i < 81 ? i : i - 81;
        for (int j = 0; j < 101; j++)
            if (d.values[2 * j] == from->values[2 * k] && d.labels[j] == from->labels[k]) seen[j]++;
    }
    for (int j = 0; j < 101; j++) assert_int_equal(seen[j], 1);
    fac_dataset_free(&d);
    fac_dataset_free(&a);
    fac_dataset_free(&b);
}

static void every_epoch_is_an_order(void **state) {
    (void)state;
    fac_dataset d = { .count = 0 };
    for (d.count = 1; d.count < 3000; d.count = d.count * 2 + 1) {
        char *seen = calloc((size_t)d.count, 1);
        int64_t same = 0, moved = 0;
        fac_batches b = { .size = 8, .shuffle = true, .seed = 5 };
        for (int64_t i = 0; i < d.count; i++) {
            int64_t k = fac_batches_sample(&d, &b, 4, i);
            assert_true(k >= 0 && k < d.count && !seen[k]);
            seen[k] = 1;
            same += k == fac_batches_sample(&d, &b, 5, i);
            moved += k != i;
        }
        if (d.count > 100) assert_true(same < 10 && moved > d.count - 10);
        free(seen);
    }
}

static void batches_are_normalized_and_augmented(void **state) {
    (void)state;
    fac_dataset d = { 0 };
    fac_tensor *x = NULL, *labels = NULL;
    put_mnist("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    OK(fac_dataset_mnist(folder, false, &d, err));
    d.mean[0] = 0.25;
    d.std[0] = 0.5;
    fac_batches b = { .size = 2 };
    assert_int_equal(fac_batches_count(&d, &b), 3);
    OK(fac_batch(&d, &b, 0, 2, &x, &labels, err)); /* what is left: sample 4 */
    const float *p = fac_tensor_data(x);
    assert_int_equal(fac_tensor_type(x).dims.d[0], 1);
    assert_int_equal(((const int64_t *)fac_tensor_data(labels))[0], 6);
    for (int i = 0; i < 16; i++) assert_true(p[i] == (float)(((64 + i) / 255.0 - 0.25) / 0.5));
    fac_tensor_free(x);
    fac_tensor_free(labels);

    int mirrored = 0, shifted = 0;
    b = (fac_batches){ .size = 5, .augment = { .crop = 1, .flip = true }, .seed = 2 };
    for (int64_t epoch = 0; epoch < 20; epoch++) {
        OK(fac_batch(&d, &b, epoch, 0, &x, &labels, err));
        p = fac_tensor_data(x);
        for (int s = 0; s < 5;
             s++, p += 16) { /* the 3 x 3 places and two ways: exactly one must fit */
            int fits = 0;
            for (int way = 0; way < 18; way++) {
                int down = way / 2 % 3 - 1, right = way / 6 - 1, flip = way % 2;
                bool same = true;
                for (int i = 0; i < 16; i++) {
                    int yy = i / 4 + down, xx = i % 4 + right, v = 0;
                    if (yy >= 0 && yy < 4 && xx >= 0 && xx < 4)
                        v = d.bytes[16 * s + 4 * yy + (flip ? 3 - xx : xx)];
                    same &= p[i] == (float)((v / 255.0 - 0.25) / 0.5);
                }
                if (!same) continue;
                fits++;
                mirrored += flip;
                shifted += down || right;
            }
            assert_int_equal(fits, 1);
        }
        fac_tensor_free(x);
        fac_tensor_free(labels);
    }
    assert_true(mirrored > 25 && mirrored < 75 && shifted > 60);
    fac_error e = { 0 };
    assert_int_equal(fac_batch(&d, &b, 0, 1, &x, &labels, &e), FAC_E_ARGUMENT);
    fac_dataset_free(&d);
}

static void real_mnist(void **state) {
    (void)state;
    const char *data = getenv("FACULA_DATA");
    char path[512];
    if (!data) skip();
    snprintf(path, sizeof path, "%s/mnist", data);
    fac_dataset d = { 0 };
    OK(fac_dataset_mnist(path, true, &d, err));
    assert_true(d.count == 60000 && d.item.d[1] == 28 && d.labels[0] == 5 && d.labels[1] == 0 &&
                d.labels[2] == 4);
    double sum = 0;
    for (int64_t i = 0; i < 60000 * 784; i++) sum += d.bytes[i];
    assert_true(sum / (60000.0 * 784 * 255) > 0.13065 &&
                sum / (60000.0 * 784 * 255) < 0.13067); /* the known mean */
    fac_dataset_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mnist_is_read),
        cmocka_unit_test(broken_idx_files_are_refused),
#ifdef FAC_HAVE_ZLIB
        cmocka_unit_test(packed_files_are_read),
        cmocka_unit_test(packed_members_are_one_file),
#endif
        cmocka_unit_test(folders_of_photos_are_read),
        cmocka_unit_test(images_are_resized),
        cmocka_unit_test(toys_have_their_shapes),
        cmocka_unit_test(a_split_keeps_every_sample),
        cmocka_unit_test(every_epoch_is_an_order),
        cmocka_unit_test(batches_are_normalized_and_augmented),
        cmocka_unit_test(real_mnist),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
