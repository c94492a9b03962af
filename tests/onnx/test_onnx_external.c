/* TensorProto: external data, the ways out of its folder, and links out of it. */
#include "onnx_tensor_check.h"

/* ---- external data ---- */

static bytes external(const char *location, const char *offset, const char *length) {
    bytes b = w_tensor("w", 1, "2");
    if (location) w_external(&b, "location", location);
    if (offset) w_external(&b, "offset", offset);
    if (length) w_external(&b, "length", length);
    w_int(&b, LOCATION, 1);
    return b;
}

static void takes(bytes b, float first) {
    fac_tensor *t;
    fac_error err = { 0 };
    float got[2];
    if (load(b, &t, &err)) fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_read(t, got, sizeof got, NULL), FAC_OK);
    assert_true(got[0] == first && got[1] == first + 1);
    fac_tensor_free(t);
}

static void external_data(void **state) {
    (void)state;
    const float x[] = { 0, 1, 2, 3 };
    mkdir(path_of("sub"), 0700);
    write_file(path_of("x.bin"), x, sizeof x);
    write_file(path_of("sub/y.bin"), x, sizeof x);
    takes(external("x.bin", "8", "8"), 2);
    takes(external("x.bin", "4", NULL), 1);
    takes(external("./x.bin", NULL, "8"), 0);
    takes(external("sub/y.bin", "8", "8"), 2);
    takes(external("sub//y.bin", "8", "8"), 2);
    refuses(external("x.bin", NULL, "12"), FAC_E_FORMAT, "12 bytes of data where its type needs 8");
    refuses(external("x.bin", "12", NULL), FAC_E_FORMAT, "8 bytes of external data from byte 12");
    refuses(external("x.bin", "17", "8"), FAC_E_FORMAT, "from byte 17 of \"x.bin\", which has 16");
    refuses(external("x.bin", "2147483648", "8"), FAC_E_FORMAT, "from byte 2147483648");
    refuses(external("x.bin", "18446744073709551615", "8"), FAC_E_FORMAT,
            "from byte 18446744073709551615");
    refuses(external("x.bin", "18446744073709551616", "8"), FAC_E_FORMAT,
            "offset \"18446744073709551616\"");
    refuses(external("x.bin", "8", "18446744073709551615"), FAC_E_FORMAT,
            "18446744073709551615 bytes of external data");
    refuses(external("x.bin", "-8", "8"), FAC_E_FORMAT, "offset \"-8\"");
    refuses(external("x.bin", "", "8"), FAC_E_FORMAT, "offset \"\"");
    refuses(external("x.bin", "0", "0x8"), FAC_E_FORMAT, "length \"0x8\"");
    refuses(external("none.bin", NULL, NULL), FAC_E_IO, "\"none.bin\" is missing");
    refuses(external(NULL, NULL, NULL), FAC_E_FORMAT, "without a location");
    refuses(external("", NULL, NULL), FAC_E_FORMAT, "without a location");
    refuses(external("sub", NULL, NULL), FAC_E_IO, "directory");
    refuses(external(".", NULL, NULL), FAC_E_IO, "directory");
}

static void ways_out(void **state) {
    (void)state;
    const float x[] = { 0, 1, 2, 3 };
    char outside[600], inside[600];
    snprintf(outside, sizeof outside, "%s-outside.bin",
             folder); /* beside the folder, with its name as a prefix */
    write_file(outside, x, sizeof x);
    snprintf(inside, sizeof inside, "%s/x.bin", folder);
    refuses(external(outside, NULL, "8"), FAC_E_FORMAT, "not inside the model's folder");
    refuses(external(inside, NULL, "8"), FAC_E_FORMAT, "not inside the model's folder");
    refuses(external("../x.bin", NULL, "8"), FAC_E_FORMAT, "not inside the model's folder");
    refuses(external("sub/../x.bin", NULL, "8"), FAC_E_FORMAT, "not inside the model's folder");
    refuses(external("sub/..", NULL, "8"), FAC_E_FORMAT, "not inside the model's folder");
    assert_int_equal(symlink(outside, path_of("link.bin")), 0);
    assert_int_equal(symlink("x.bin", path_of("near.bin")), 0);
    assert_int_equal(symlink("/", path_of("root")), 0);
    refuses(external("link.bin", NULL, "8"), FAC_E_FORMAT, "leaves the model's folder");
    refuses(external("root/etc/passwd", NULL, "8"), FAC_E_FORMAT, "leaves the model's folder");
    takes(external("near.bin", "8", "8"), 2);
    unlink(outside);
    unlink(path_of("link.bin"));
    unlink(path_of("near.bin"));
    unlink(path_of("root"));
}

/* ---- links out of the folder ---- */

static void make_link(const char *to, const char *name) {
    unlink(path_of(name));
    assert_int_equal(symlink(to, path_of(name)), 0);
}

/* The tensor in the file `model`, whose data are at `data` of its folder: read, or refused with
 * these words. */
static void cached(const char *model, const char *says) {
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    float got[2];
    const fac_status status = fac_onnx_tensor_load(path_of(model), &t, NULL, 0, &err);
    if (says && (!status || !strstr(err.text, says)))
        fail_msg("\"%s\" does not say \"%s\"", status ? err.text : "", says);
    if (says) return;
    if (status) fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_read(t, got, sizeof got, NULL), FAC_OK);
    assert_true(got[0] == 2 && got[1] == 3);
    fac_tensor_free(t);
}

/* hub/blobs holds contents, hub/snapshots/1 names that are links: only what lies in the same folder
 * of blobs is taken. */
static void caches(void **state) {
    (void)state;
    static const char *const folders[] = { "hub",           "hub/blobs",       "hub/blobs/deep",
                                           "hub/snapshots", "hub/snapshots/1", "other",
                                           "other/blobs",   "hub/blobsy" };
    static const char leaves[] = "leaves the model's folder";
    const float x[] = { 0, 1, 2, 3 };
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) mkdir(path_of(folders[k]), 0700);
    bytes b = external("w.bin", "8", "8");
    write_file(path_of("hub/blobs/aaa"), b.p, b.n);
    write_file(path_of("hub/blobsy/aaa"), b.p, b.n);
    write_file(path_of("other/blobs/aaa"), b.p, b.n);
    write_file(path_of("hub/snapshots/1/plain.pb"), b.p, b.n);
    write_file(path_of("other/blobs/bbb"), x, sizeof x);
    write_file(path_of("hub/blobs/bbb"), x, sizeof x);
    write_file(path_of("hub/blobs/deep/bbb"), x, sizeof x);
    write_file(path_of("hub/blobsy/bbb"), x, sizeof x);
    free(b.p);
    make_link("../../blobs/aaa", "hub/snapshots/1/m.pb");
    make_link("../../blobs/bbb", "hub/snapshots/1/w.bin");
    cached("hub/snapshots/1/m.pb", NULL);
    make_link("m.pb", "hub/snapshots/1/again.pb"); /* a link to the link */
    cached("hub/snapshots/1/again.pb", NULL);
    make_link("hub/snapshots/1", "short"); /* the folder by another name */
    cached("short/m.pb", NULL);
    cached("hub/snapshots/1/plain.pb", leaves); /* a file of its own has no part in the cache */

    static const char *const elsewhere[] = { "../../../other/blobs/bbb", "../../blobs/deep/bbb",
                                             "../../blobsy/bbb", "/etc/passwd", "../../blobs/out" };
    make_link("../../other/blobs/bbb", "hub/blobs/out"); /* a blob that is a link itself */
    for (size_t k = 0; k < sizeof elsewhere / sizeof *elsewhere; k++) {
        make_link(elsewhere[k], "hub/snapshots/1/w.bin");
        cached("hub/snapshots/1/m.pb", leaves);
    }
    /* the model is a link into a folder that is no sibling of its own folder's, or has another name
     */
    make_link("../../../other/blobs/aaa", "hub/snapshots/1/far.pb");
    make_link("../../../other/blobs/bbb", "hub/snapshots/1/w.bin");
    cached("hub/snapshots/1/far.pb", leaves);
    make_link("../../blobsy/aaa", "hub/snapshots/1/odd.pb");
    make_link("../../blobsy/bbb", "hub/snapshots/1/w.bin");
    cached("hub/snapshots/1/odd.pb", leaves);
    make_link("../../blobs/bbb", "hub/snapshots/1/w.bin");
    cached("hub/snapshots/1/far.pb", leaves); /* other blobs than the model's */

    static const char *const made[] = { "hub/blobs/aaa",
                                        "hub/blobs/bbb",
                                        "hub/blobs/out",
                                        "hub/blobs/deep/bbb",
                                        "hub/blobsy/aaa",
                                        "hub/blobsy/bbb",
                                        "other/blobs/aaa",
                                        "other/blobs/bbb",
                                        "hub/snapshots/1/plain.pb",
                                        "hub/snapshots/1/m.pb",
                                        "short",
                                        "hub/snapshots/1/w.bin",
                                        "hub/snapshots/1/again.pb",
                                        "hub/snapshots/1/far.pb",
                                        "hub/snapshots/1/odd.pb" };
    for (size_t k = 0; k < sizeof made / sizeof *made; k++)
        assert_int_equal(unlink(path_of(made[k])), 0);
    for (size_t k = sizeof folders / sizeof *folders; k--;)
        assert_int_equal(rmdir(path_of(folders[k])), 0);
}

/* A weight is held once: aligned data stay in the file, others are copied while the file's pages
 * go. */
static void once_in_memory(void **state) {
    (void)state;
    enum { MB = 1 << 20, SIZE = 64 * MB };
    static uint8_t chunk[MB];
    for (int shift = 0; shift < 4; shift++) {
        bytes head = w_tensor(NULL, 1, "4096,4096");
        struct rusage before, after;
        fac_tensor *t;
        w_bytes(&head, 8, "xxx", (size_t)shift);
        w_varint(&head, RAW << 3 | 2);
        w_varint(&head, SIZE);
        FILE *f = fopen(path_of("t.pb"), "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(head.p, 1, head.n, f), head.n);
        for (int k = 0; k < SIZE / MB; k++) assert_int_equal(fwrite(chunk, 1, MB, f), MB);
        assert_int_equal(fclose(f), 0);
        free(head.p);
        getrusage(RUSAGE_SELF, &before);
        assert_int_equal(fac_onnx_tensor_load(path_of("t.pb"), &t, NULL, 0, NULL), FAC_OK);
        getrusage(RUSAGE_SELF, &after);
        fac_tensor_free(t);
        assert_true((after.ru_maxrss - before.ru_maxrss) * 1024 < SIZE + SIZE / 5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(external_data),
        cmocka_unit_test(ways_out),
        cmocka_unit_test(caches),
        cmocka_unit_test(once_in_memory),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
