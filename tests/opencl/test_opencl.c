/* The OpenCL device: opening by number and name, memory that is cut, merged and reused, transfers,
 * tensors, paths that are probed.  Skipped where no driver is; FACULA_OPENCL=which runs it on
 * another device than the first. */
#include "opencl_device_check.h"

static void devices_are_found_by_number_and_name(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_device *d = NULL;
    OK(fac_device_open("opencl:0", NULL, &d, &err));
    assert_string_equal(fac_device_name(d), "opencl:0");
    char name[64];
    snprintf(name, sizeof name, "opencl:%.20s", fac_opencl_of(d)->place.name);
    fac_device_free(d);
    OK(fac_device_open(name, NULL, &d, &err));
    fac_device_free(d);
    assert_int_equal(fac_device_open("opencl:999", NULL, &d, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "there are: 0 ("));
    assert_int_equal(fac_device_open("opencl:no such thing", NULL, &d, &err), FAC_E_ARGUMENT);
}

/* Random blocks come and go; each keeps what was written to it, no two overlap, and at the end all
 * is free and in one piece. */
static void blocks_keep_their_contents(void **state) {
    (void)state;
    NEEDS_DEVICE();
    enum { BLOCKS = 40, TURNS = 600, WORDS = 4 };
    fac_opencl *o = fac_opencl_of(device);
    fac_cl_block *block[BLOCKS] = { NULL };
    uint64_t word[BLOCKS], seed = 5, k = 0;
    size_t length[BLOCKS];
    for (int turn = 0; turn < TURNS; turn++) {
        int i = (int)(fac_random_bits(seed, 1, k++) % BLOCKS);
        uint64_t back[WORDS] = { 0 };
        if (block[i]) {
            OK(device->backend->read(device, (fac_span){ block[i], length[i] - sizeof back }, back,
                                     sizeof back, &err));
            for (int w = 0; w < WORDS; w++) assert_true(back[w] == word[i] + (uint64_t)w);
            fac_cl_give(o, block[i]);
            block[i] = NULL;
            continue;
        }
        length[i] = 32 + fac_random_bits(seed, 1, k++) % (turn % 3 ? 5000 : 3000000) / 8 * 8;
        word[i] = fac_random_bits(seed, 2, k++);
        OK(fac_cl_take(o, length[i], &block[i], &err));
        assert_true(block[i]->bytes >= length[i]);
        for (int w = 0; w < WORDS; w++) back[w] = word[i] + (uint64_t)w;
        OK(device->backend->write(device, (fac_span){ block[i], length[i] - sizeof back }, back,
                                  sizeof back, &err));
    }
    for (int i = 0; i < BLOCKS; i++)
        if (block[i]) fac_cl_give(o, block[i]);
    assert_int_equal(o->memory.used, 0);
    for (const fac_cl_segment *s = o->memory.segments; s; s = s->next)
        assert_true(!s->first->next && s->first->bytes == s->bytes);
    size_t held = o->memory.reserved;
    assert_int_equal(fac_cl_trim(o), held);
    assert_int_equal(o->memory.reserved, 0);
}

static void memory_is_reused(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_opencl *o = fac_opencl_of(device);
    fac_cl_block *b;
    OK(fac_cl_take(o, 5 << 20, &b, &err));
    size_t held = o->memory.reserved;
    fac_cl_give(o, b);
    for (int i = 0; i < 10; i++) {
        OK(fac_cl_take(o, (size_t)(4 + i % 2) << 20, &b, &err));
        fac_cl_give(o, b);
    }
    assert_int_equal(o->memory.reserved, held);
    assert_int_equal(fac_cl_take(o, SIZE_MAX / 2, &b, &err), FAC_E_NOMEM);
    assert_int_equal(fac_cl_take(o, SIZE_MAX, &b, &err), FAC_E_NOMEM);
    fac_cl_trim(o);
}

static void limits_are_kept(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_device *d = NULL;
    fac_tensor *t = NULL, *more = NULL;
    OK(fac_device_open(fac_device_name(device), &(fac_device_opts){ .memory_limit = 1 << 20 }, &d,
                       &err));
    OK(fac_tensor_new(d, FAC_F32, fac_shape(200000), &t, &err));
    assert_int_equal(fac_tensor_new(d, FAC_F32, fac_shape(200000), &more, &err), FAC_E_NOMEM);
    assert_int_equal(fac_device_memory(d).now, 800000);
    fac_tensor_free(t);
    assert_int_equal(fac_device_memory(d).now, 0);
    fac_device_free(d);
}

static void tensors_live_on_the_device(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_tensor *t = NULL, *row = NULL;
    float x[12], back[12], one[4];
    for (int i = 0; i < 12; i++) x[i] = (float)i;
    OK(fac_tensor_new(device, FAC_F32, fac_shape(3, 4), &t, &err));
    OK(fac_tensor_read(t, back, sizeof back, &err));
    for (int i = 0; i < 12; i++) assert_true(back[i] == 0);
    OK(fac_tensor_write(t, x, sizeof x, &err));
    OK(fac_tensor_read(t, back, sizeof back, &err));
    assert_memory_equal(x, back, sizeof x);
    assert_null(fac_tensor_data(t));
    OK(fac_tensor_view(t, fac_shape(4), (const int64_t[]){ 1 }, 4, &row, &err));
    OK(fac_tensor_read(row, one, sizeof one, &err));
    assert_memory_equal(x + 4, one, sizeof one);
    fac_tensor_free(row);
    fac_tensor_free(t);
}

/* What is not promised is not there; an answer is kept on disk, and a kept one is believed. */
static void same_as_probed(void *self, const char *name, const char *whether) {
    int *told = self;
    fac_opencl *o = fac_opencl_of(device);
    assert_string_equal(name, fac_cl_path_name((fac_cl_path)*told));
    assert_int_equal(!strncmp(whether, "yes, by ", 8), fac_cl_has_path(o, (fac_cl_path)*told));
    assert_non_null(strstr(whether, fac_cl_has_path(o, (fac_cl_path)*told)
                                        ? fac_cl_path_extension((fac_cl_path)*told)
                                        : "no, "));
    ++*told;
}

static void paths_are_probed(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_opencl *o = fac_opencl_of(device);
    for (int k = 0; k < FAC_CL_PATHS; k++) {
        const int before = entries();
        const bool has = fac_cl_has_path(o, (fac_cl_path)k),
                   promised = fac_cl_promises(o, (fac_cl_path)k);
        assert_true(promised || !has);
        assert_int_equal(entries(), before + promised);
        o->paths[k] = 0;
        assert_int_equal(fac_cl_has_path(o, (fac_cl_path)k), has);
        assert_int_equal(entries(), before + promised);
    }
    assert_int_equal(fac_cl_has_path(o, FAC_CL_DOUBLES), o->limits.fp64);
    int told = 0;
    fac_device_paths(device, same_as_probed, &told);
    assert_int_equal(told, FAC_CL_PATHS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_found_by_number_and_name),
        cmocka_unit_test(blocks_keep_their_contents),
        cmocka_unit_test(memory_is_reused),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(tensors_live_on_the_device),
        cmocka_unit_test(paths_are_probed),
    };
    return cmocka_run_group_tests_name("opencl", tests, open_device, close_device);
}
