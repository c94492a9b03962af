/* Small weight files for test_weights.c and for the seeds of the fuzzer, as NumPy, PyTorch and
 * safetensors write them. */
#ifndef FACULA_WEIGHT_FILES_H
#define FACULA_WEIGHT_FILES_H
#include "weight_writers.h"

/* ---- one well-formed file of each kind, with the f32 numbers 0, 1... in it ---- */

enum {
    NPY_1,
    NPY_2,
    NPY_FORTRAN,
    NPY_TEXT,
    NPZ,
    NPZ_DEFLATED,
    NPZ_64,
    SAFETENSORS,
    PTH,
    PTH_DEFLATED,
    PTH_LEGACY,
    PTH_NESTED,
    NPY_BIG,
    NPZ_OTHERS,
    SAFETENSORS_OTHERS,
    PTH_OTHERS,
    PTH_LEGACY_OTHERS,
    WEIGHT_FILES
};

static const char *const weight_file_names[WEIGHT_FILES] __attribute__((unused)) = {
    "v1.npy",       "v2.npy",           "fortran.npy",     "text.npy",   "stored.npz",
    "deflated.npz", "zip64.npz",        "two.safetensors", "zip.pth",    "deflated.pth",
    "legacy.pth",   "nested.pth",       "big.npy",         "others.npz", "others.safetensors",
    "others.pth",   "legacy_others.pth"
};

/* A call: what the pickle so far ends with is the function. */
FILES void pickle_call(fac_text *t, int n, const int64_t *x) {
    pickle_ints(t, n, x);
    fac_text_add(t, "R");
}

/* What checkpoints hold beside tensors, after the "}(" of a dict: "bytes" is u16 there, "freqs" and
 * "packed" are skipped. */
FILES void pickle_others(fac_text *t, bool legacy) {
    const pickled_tensor complex = { legacy ? "ComplexFloatStorage" : "ComplexDoubleStorage",
                                     "0",
                                     legacy ? 6 : 3,
                                     0,
                                     1,
                                     { 2 },
                                     { 1 } };
    const int64_t two[] = { 2, 3 };
    pickle_text(t, "freqs");
    pickle_tensor(t, &complex, legacy);
    pickle_text(t, "packed");
    fac_text_add(t, "ctorch._utils\n_rebuild_qtensor\n");
    pickle_call(t, 2, two);
    pickle_text(t, "config");
    fac_text_add(t, "}(");
    pickle_text(t, "dtype");
    fac_text_add(t, "ctorch\nbfloat16\n");
    pickle_text(t, "size");
    fac_text_add(t, "ctorch\nSize\n(");
    pickle_ints(t, 2, two);
    fac_text_add(t, "tR");
    pickle_text(t, "device");
    fac_text_add(t, "ctorch\ndevice\n");
    pickle_text(t, "cuda");
    fac_text_add(t, "\x85R");
    pickle_text(t, "args");
    fac_text_add(t, "cargparse\nNamespace\n)\x81}");
    pickle_text(t, "lr");
    fac_text_add(t, "Nsb");
    pickle_text(t, "queue");
    fac_text_add(t, "ccollections\ndeque\n)R(NNe");
    pickle_text(t, "best");
    fac_text_add(t, "cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\n(");
    pickle_text(t, "f8");
    fac_text_add(t, "tR(K\3");
    pickle_text(t, ">");
    fac_text_add(t, "NNNNNNtb");
    pickle_text(t, "8 bytes.");
    fac_text_add(t, "\x86Ru");
    if (legacy) return;
    pickle_text(t, "bytes");
    fac_text_add(t, "ctorch._utils\n_rebuild_tensor_v3\n((");
    pickle_text(t, "storage");
    fac_text_add(t, "ctorch.storage\nUntypedStorage\n");
    pickle_text(t, "0");
    pickle_text(t, "cpu");
    pickle_int(t, 48);
    fac_text_add(t, "tQ");
    pickle_int(t, 1); /* the upper half of every second float */
    pickle_ints(t, 1, (int64_t[]){ 6 });
    pickle_ints(t, 1, (int64_t[]){ 4 });
    fac_text_add(t, "\x89}ctorch\nuint16\ntR");
}

FILES void weight_file(fac_text *to, int which) {
    float x[12];
    for (int i = 0; i < 12; i++) x[i] = (float)i;
    fac_text npy = { 0 }, pickle = { 0 };
    zip_file z = { .to = to, .zip64 = which == NPZ_64 };
    const pickled_tensor plain = { "FloatStorage", "0", 12, 0, 2, { 3, 4 }, { 4, 1 } };
    const pickled_tensor second = { "FloatStorage", "1", 12, 0, 2, { 3, 4 }, { 4, 1 } };
    const pickled_tensor transposed = { "FloatStorage", "0", 12, 1, 2, { 4, 2 }, { 1, 4 } };
    switch (which) {
    case NPY_1:
        npy_file(to, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", x, sizeof x);
        break;
    case NPY_2:
        npy_file(to, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (12,), }", x, sizeof x);
        break;
    case NPY_FORTRAN:
        npy_file(to, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }", x, sizeof x);
        break;
    case NPY_TEXT:
        npy_file(to, 3, "{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }",
                 "a\0\0\0\0\0\0\0\x1e\xd1\1\0b\0\0\0", 16);
        break;
    case NPZ:
    case NPZ_DEFLATED:
    case NPZ_64:
        weight_file(&npy, NPY_1);
        zip_entry(&z, "a.npy", npy.s, npy.n, which == NPZ_DEFLATED);
        zip_entry(&z, "b.c.npy", npy.s, npy.n, which == NPZ_DEFLATED);
        zip_finish(&z);
        break;
    case SAFETENSORS:
        safetensors_file(to,
                         "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[0,32]},\"__"
                         "metadata__\":{\"x\":\"y\"},"
                         "\"b\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[32,48]}}   ",
                         x, sizeof x);
        break;
    case PTH:
    case PTH_DEFLATED:
    case PTH_LEGACY:
        pickle_begin(&pickle);
        put_literal(&pickle, "ccollections\nOrderedDict\nq\0)Rq\1(");
        pickle_text(&pickle, "a");
        pickle_tensor(&pickle, &plain, which == PTH_LEGACY);
        put_literal(&pickle, "q\2");
        pickle_text(&pickle, "transposed");
        pickle_tensor(&pickle, &transposed, which == PTH_LEGACY);
        pickle_text(&pickle, "again");
        fac_text_add(&pickle, "h\2u}");
        pickle_text(&pickle, "_metadata");
        fac_text_add(&pickle, "h\1sb.");
        if (which == PTH_LEGACY)
            pth_legacy(to, &pickle, 1, (int64_t[]){ 12 }, x, sizeof x);
        else
            pth_zip(to, &pickle, "0", x, sizeof x, which == PTH_DEFLATED);
        break;
    case PTH_NESTED:
        pickle_begin(&pickle);
        fac_text_add(&pickle, "}(");
        pickle_text(&pickle, "epoch");
        fac_text_add(&pickle, "M\1\1");
        pickle_text(&pickle, "loss");
        put_literal(&pickle, "G\0\0\0\0\0\0\0\0");
        pickle_text(&pickle, "list");
        fac_text_add(&pickle, "](K\1N\x88\x8a\2\xff\xff"
                              "e");
        pickle_text(&pickle, "state_dict");
        fac_text_add(&pickle, "}(");
        pickle_text(&pickle, "a");
        fac_text_add(&pickle, "ctorch._utils\n_rebuild_parameter\n");
        pickle_tensor(&pickle, &plain, false);
        fac_text_add(&pickle, "\x88}\x87R");
        pickle_text(&pickle, "inner");
        fac_text_add(&pickle, "}K\7");
        pickle_tensor(&pickle, &transposed, false);
        fac_text_add(&pickle, "suu.");
        pth_zip(to, &pickle, "0", x, sizeof x, false);
        break;
    case NPY_BIG:
        for (char *p = (char *)x; p < (char *)(x + 12); p += 4) {
            const char a = p[0], b = p[1];
            p[0] = p[3];
            p[1] = p[2];
            p[2] = b;
            p[3] = a;
        }
        npy_file(to, 1, "{'descr': '>f4', 'fortran_order': True, 'shape': (3, 4), }", x, sizeof x);
        break;
    case NPZ_OTHERS:
        npy_file(&npy, 1, "{'descr': '|O', 'fortran_order': False, 'shape': (), }", "\x80\2N.", 4);
        zip_entry(&z, "object.npy", npy.s, npy.n, false);
        fac_text_free(&npy);
        weight_file(&npy, NPY_BIG);
        zip_entry(&z, "a.npy", npy.s, npy.n, true);
        fac_text_free(&npy);
        npy_file(&npy, 1, "{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }", x,
                 sizeof x);
        zip_entry(&z, "freqs.npy", npy.s, npy.n, false);
        zip_finish(&z);
        break;
    case SAFETENSORS_OTHERS:
        safetensors_file(
            to,
            "{\"freqs\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]},"
            "\"scale\":{\"dtype\":\"F6_E2M3\",\"shape\":[2,4],\"data_offsets\":[8,16]},"
            "\"a\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[16,48]}}",
            x, sizeof x);
        break;
    case PTH_OTHERS:
    case PTH_LEGACY_OTHERS:
        pickle_begin(&pickle);
        fac_text_add(&pickle, "}(");
        pickle_others(&pickle, which == PTH_LEGACY_OTHERS);
        pickle_text(&pickle, "a");
        pickle_tensor(&pickle, which == PTH_OTHERS ? &plain : &second, which == PTH_LEGACY_OTHERS);
        fac_text_add(&pickle, "u.");
        if (which == PTH_LEGACY_OTHERS)
            pth_legacy(to, &pickle, 2, (int64_t[]){ 6, 12 }, x, sizeof x);
        else
            pth_zip(to, &pickle, "0", x, sizeof x, false);
        break;
    }
    fac_text_free(&npy);
    fac_text_free(&pickle);
}
#endif
