/* What other libraries read and hear: FLAC, Ogg, Opus, MP3, AIFF and AU by libsndfile, which also
 * writes them here; a microphone by ALSA, whose device "null" hears silence.  Skipped where a
 * library is missing, but for its error. */
#include "sound_check.h"
#include <dlfcn.h>
#include "folder.h"

enum { N = 16000, RATE = 16000, WRITE = 0x20 };

/* As sndfile.h has it. */
typedef struct info {
    int64_t frames;
    int rate, channels, format, sections, seekable;
} info;
typedef struct writer {
    void *library;
    void *(*open)(const char *path, int mode, info *i);
    int64_t (*write)(void *file, const float *from, int64_t frames);
    int (*close)(void *file);
} writer;

static bool find_library(writer *w) {
    w->library = dlopen("libsndfile.so.1", RTLD_NOW | RTLD_NODELETE);
    if (!w->library) return false;
    *(void **)(void *)&w->open = dlsym(w->library, "sf_open");
    *(void **)(void *)&w->write = dlsym(w->library, "sf_writef_float");
    *(void **)(void *)&w->close = dlsym(w->library, "sf_close");
    return w->open && w->write && w->close;
}

static void tone(float *x) {
    for (int i = 0; i < N; i++) x[i] = 0.5f * sinf(0.2f * (float)i) * (float)i / N;
}

/* false: this libsndfile does not write the format. */
static bool put(const writer *w, const char *path, int format, const float *x) {
    info i = { .rate = RATE, .channels = 1, .format = format };
    void *file = w->open(path, WRITE, &i);
    if (!file) return false;
    assert_int_equal(w->write(file, x, N), N);
    w->close(file);
    return true;
}

static double power(const float *x, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (double)x[k] * x[k];
    return sum;
}

/* MP3 and Opus begin later, so only what is heard in all is compared. */
static void every_format(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int format;
        double each, all; /* largest error of a sample, 0: none is looked at; of the power */
    } forms[] = {
        { "a.flac", 0x170002, 1.0 / 32768, 1e-4 },
        { "a.ogg", 0x200060, 0.02, 0.02 },
        { "a.opus", 0x200064, 0, 0.1 },
        { "a.mp3", 0x230082, 0, 0.1 },
        { "a.aiff", 0x020002, 1.0 / 32768, 1e-4 },
        { "a.au", 0x030002, 1.0 / 32768, 1e-4 },
    };
    writer w = { 0 };
    float x[N];
    if (!find_library(&w)) skip();
    tone(x);
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        fac_sound s = { 0 };
        if (!put(&w, path_of(forms[k].name), forms[k].format, x)) {
            print_message("%s: skipped, this libsndfile does not write it\n", forms[k].name);
            continue;
        }
        OK(fac_sound_load(path_of(forms[k].name), &s, err));
        assert_int_equal(s.channels, 1);
        assert_true(s.rate == RATE || s.rate == 48000);
        assert_true(llabs(s.frames * RATE / s.rate - N) < 3000);
        for (int64_t i = 0; forms[k].each > 0 && i < N; i++)
            if (fabs(s.samples[i] - x[i]) > forms[k].each)
                fail_msg("%s: sample %lld is %g, not %g", forms[k].name, (long long)i, s.samples[i],
                         x[i]);
        const double have = power(s.samples, s.frames) * RATE / s.rate, want = power(x, N);
        if (fabs(have / want - 1) > forms[k].all)
            fail_msg("%s: a power of %g, not %g", forms[k].name, have, want);
        fac_sound_free(&s);
    }
}

static void put_bytes(const char *name, const void *bytes, size_t n) {
    FILE *f = fopen(path_of(name), "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
}

/* However much of the file is missing, it is refused. */
static void cut(const writer *w, const char *name, int format) {
    static char bytes[4 * N];
    float x[N];
    fac_sound s = { 0 };
    tone(x);
    if (!put(w, path_of(name), format, x)) return;
    FILE *f = fopen(path_of(name), "rb");
    const size_t all = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    OK(fac_sound_load(path_of(name), &s, err));
    fac_sound_free(&s);
    for (size_t n = all - 1; n < all; n -= 1 + all / 40) {
        fac_error e = { 0 };
        put_bytes(name, bytes, n);
        if (!fac_sound_load(path_of(name), &s, &e)) fail_msg("%zu of %zu bytes were read", n, all);
        if (e.status != FAC_E_FORMAT) fail_msg("%s", e.text);
    }
}

static void what_is_broken(void **state) {
    (void)state;
    writer w = { 0 };
    fac_sound s = { 0 };
    fac_error e = { 0 };
    put_bytes("b.flac", "fLaC and then nothing of the kind", 33);
    const fac_status status = fac_sound_load(path_of("b.flac"), &s, &e);
    assert_true(status == FAC_E_FORMAT || status == FAC_E_UNSUPPORTED);
    if (status == FAC_E_UNSUPPORTED) assert_non_null(strstr(e.text, "libsndfile1"));
    if (!find_library(&w)) skip();
    assert_int_equal(status, FAC_E_FORMAT);
    cut(&w, "c.flac", 0x170002);
    cut(&w, "c.ogg", 0x200060);
}

static void a_microphone(void **state) {
    (void)state;
    fac_capture *c = NULL;
    fac_error e = { 0 };
    float x[64];
    int64_t count = 0;
    const fac_status status = fac_capture_open("no such device", RATE, &c, &e);
    assert_true(status == FAC_E_UNSUPPORTED || status == FAC_E_IO);
    if (status == FAC_E_UNSUPPORTED) {
        assert_non_null(strstr(e.text, "libasound2"));
        skip();
    }
    assert_non_null(strstr(e.text, "no such device"));
    if (fac_capture_open("null", RATE, &c, &e)) skip(); /* without ALSA's configuration */
    assert_false(fac_capture_ends(c));
    OK(fac_capture_read(c, x, 64, &count, err));
    for (int64_t k = 0; k < count; k++) assert_true(x[k] == 0);
    fac_capture_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_format),
                                        cmocka_unit_test(what_is_broken),
                                        cmocka_unit_test(a_microphone) };
    return cmocka_run_group_tests_name("sound libraries", tests, make_folder, remove_folder);
}
