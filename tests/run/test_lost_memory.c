/* Out of memory: load and run a model again and again while the n-th allocation fails, for every n,
 * until none does.  Each time there is an error or a right answer, never a crash; leaks are found
 * by running this under the address sanitizer. The linker sends the library's allocations through
 * here (see tests/CMakeLists.txt). */
#include <unistd.h>
#include "relay_check.h"
#include "onnx_writer.h"

void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
int __real_posix_memalign(void **out, size_t align, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);

static atomic_long calls, fails_at = -1; /* -1: none fails, only count */

static int lost(void) { return atomic_fetch_add(&calls, 1) == fails_at; }
void *__wrap_calloc(size_t n, size_t size) { return lost() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t size) { return lost() ? NULL : __real_realloc(p, size); }
int __wrap_posix_memalign(void **out, size_t align, size_t size) {
    return lost() ? 12 : __real_posix_memalign(out, align, size);
}

static char path[64];

/* x [N,3,8,8] -> Conv -> BatchNormalization -> Relu -> Reshape by Shape arithmetic -> Gemm ->
 * Softmax */
static void write_model(void) {
    bytes g = { 0 }, n;
    float w[16 * 27], c[16], f[5 * 64 * 16];
    for (size_t i = 0; i < sizeof w / 4; i++) w[i] = (float)(i % 7) * 0.1f - 0.3f;
    for (size_t i = 0; i < 16; i++) c[i] = 1 + (float)i * 0.01f;
    for (size_t i = 0; i < sizeof f / 4; i++) f[i] = (float)(i % 11) * 0.01f - 0.05f;
    n = w_node("Conv", "x,w", "c");
    w_sub(&g, 1, n);
    n = w_node("BatchNormalization", "c,s,s,s,s", "b");
    w_sub(&g, 1, n);
    w_sub(&g, 1, w_node("Relu", "b", "r"));
    w_sub(&g, 1, w_node("Shape", "x", "sh"));
    w_sub(&g, 1, w_node("Gather", "sh,zero", "n0"));
    n = w_node("Concat", "n0,rest", "to");
    w_attr_int(&n, "axis", 0);
    w_sub(&g, 1, n);
    w_sub(&g, 1, w_node("Reshape", "r,to", "flat"));
    n = w_node("MatMul", "flat,f", "y");
    w_sub(&g, 1, n);
    w_sub(&g, 1, w_node("Softmax", "y", "p"));
    w_sub(&g, 5, w_tensor_f32("w", "16,3,3,3", w, 16 * 27));
    w_sub(&g, 5, w_tensor_f32("s", "16", c, 16));
    w_sub(&g, 5, w_tensor_f32("f", "576,5", f, 576 * 5));
    int64_t zero[1] = { 0 }, rest[1] = { -1 };
    bytes z = w_tensor("zero", 7, "1"), r = w_tensor("rest", 7, "1");
    w_bytes(&z, 9, zero, sizeof zero);
    w_bytes(&r, 9, rest, sizeof rest);
    w_sub(&g, 5, z);
    w_sub(&g, 5, r);
    w_sub(&g, 11, w_value("x", 1, "N,3,8,8"));
    w_sub(&g, 12, w_value("p", 1, "N,5"));
    bytes m = w_model(g, 8, 13);
    snprintf(path, sizeof path, "/tmp/facula-lost-%d.onnx", (int)getpid());
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(m.p, 1, m.n, file), m.n);
    fclose(file);
    free(m.p);
}

static bool with_relays;

/* Everything from opening the device to the answer; FAC_OK or what went wrong. */
static fac_status load_and_run(const char *model, float *first, fac_error *err) {
    fac_device *device = NULL;
    fac_graph *g = NULL;
    fac_program *p = NULL;
    fac_tensor *x = NULL, *y = NULL;
    fac_status status = fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &device, err);
    if (!status && with_relays) relay_give(device, device->backend, 8, true, false, 1);
    if (!status && model)
        status = fac_onnx_load(model, NULL, &g, err);
    else if (!status)
        status = fac_zoo_new("lenet", NULL, 1, &g, err);
    if (!status) status = fac_program_new(g, device, NULL, &p, err);
    if (!status)
        status = fac_tensor_new(device, FAC_F32,
                                model ? fac_shape(2, 3, 8, 8) : fac_shape(1, 1, 28, 28), &x, err);
    for (int i = 0; i < 2 && !status; i++) status = fac_program_run(p, &x, &y, err);
    if (!status) memcpy(first, fac_tensor_data(y), 5 * sizeof *first);
    fac_tensor_free(y);
    fac_tensor_free(x);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(device);
    return status;
}

static void sweep(const char *model, long step) {
    float want[5], got[5];
    fac_error err = { 0 };
    fails_at = -1;
    if (load_and_run(model, want, &err)) fail_msg("%s", err.text);
    long total = 0, failed = 0;
    for (long n = 0;; n += step) {
        calls = 0;
        fails_at = n;
        memset(&err, 0, sizeof err);
        fac_status status = load_and_run(model, got, &err);
        total = calls;
        if (status) {
            failed++;
            assert_true(err.text[0]);
            if (status != FAC_E_NOMEM) fail_msg("allocation %ld lost: %s", n, err.text);
        } else {
            assert_memory_equal(got, want, sizeof want);
        }
        if (n >= total) break;
    }
    fails_at = -1;
    print_message("%ld allocations, %ld of the losses were errors\n", total, failed);
    assert_true(failed > total / (2 * step));
}

static void onnx_model_survives_every_loss(void **state) {
    (void)state;
    write_model();
    sweep(path, 1);
    remove(path);
}

static void zoo_model_survives_every_loss(void **state) {
    (void)state;
    sweep(NULL, 3);
}

static void relays_survive_every_loss(void **state) {
    (void)state;
    with_relays = true;
    sweep(NULL, 1);
    with_relays = false;
    assert_int_equal(relay_made, relay_done);
}

/* Once planned, a run with its outputs given asks for no memory at all. */
static void planned_run_allocates_nothing(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_device *device = NULL;
    fac_graph *g = NULL;
    fac_program *p = NULL;
    fac_tensor *x = NULL, *y = NULL;
    if (fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &device, &err) ||
        fac_zoo_new("lenet", NULL, 1, &g, &err) || fac_program_new(g, device, NULL, &p, &err) ||
        fac_tensor_new(device, FAC_F32, fac_shape(3, 1, 28, 28), &x, &err) ||
        fac_program_run(p, &x, &y, &err))
        fail_msg("%s", err.text);
    calls = 0;
    for (int i = 0; i < 5; i++) assert_int_equal(fac_program_run(p, &x, &y, &err), FAC_OK);
    assert_int_equal(calls, 0);
    fac_tensor_free(y);
    fac_tensor_free(x);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(device);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(onnx_model_survives_every_loss),
                                        cmocka_unit_test(zoo_model_survives_every_loss),
                                        cmocka_unit_test(relays_survive_every_loss),
                                        cmocka_unit_test(planned_run_allocates_nothing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
