/* Sounds: every form of WAV written and read back, files that lie, rates, rings of streams. */
#include "sound_check.h"
#include <pthread.h>
#include "folder.h"

static const struct {
    fac_wav_format format;
    double step;
} forms[] = {
    { FAC_WAV_8, 1.0 / 128 },      { FAC_WAV_16, 1.0 / 32768 }, { FAC_WAV_24, 1.0 / 8388608 },
    { FAC_WAV_32, 1.0 / 8388608 }, { FAC_WAV_F32, 0 },          { FAC_WAV_F64, 0 },
};
enum { FORMS = sizeof forms / sizeof *forms };

static fac_sound noise(int frames, int channels, int rate) {
    fac_sound s = { frames, channels, rate,
                    calloc((size_t)frames * (size_t)channels + 1, sizeof(float)) };
    for (int i = 0; i < frames * channels; i++)
        s.samples[i] = (float)((double)rand() / RAND_MAX * 2 - 1) * 0.99f;
    return s;
}

static void every_form_comes_back(void **state) {
    (void)state;
    for (int f = 0; f < FORMS; f++)
        for (int channels = 1; channels <= 3; channels += 2) {
            fac_sound s = noise(101, channels, 44100), back = { 0 };
            OK(fac_wav_save(&s, path_of("a.wav"), forms[f].format, err));
            OK(fac_sound_load(path_of("a.wav"), &back, err));
            assert_int_equal(back.frames, s.frames);
            assert_int_equal(back.channels, channels);
            assert_int_equal(back.rate, 44100);
            for (int i = 0; i < 101 * channels; i++)
                if (!(fabs(back.samples[i] - s.samples[i]) <= 0.5001 * forms[f].step))
                    fail_msg("form %d: sample %d is %g, was %g", f, i, back.samples[i],
                             s.samples[i]);
            free(s.samples);
            fac_sound_free(&back);
        }
}

/* What is louder than full scale is limited, and 16 bits are divided by 32768. */
static void full_scale_is_limited(void **state) {
    (void)state;
    float x[] = { 2, -2, 1, -1, 0, NAN };
    const float want[] = { 32767.f / 32768, -1, 32767.f / 32768, -1, 0, -1 };
    fac_sound s = { 6, 1, 8000, x }, back = { 0 };
    OK(fac_wav_save(&s, path_of("b.wav"), FAC_WAV_16, err));
    OK(fac_sound_load(path_of("b.wav"), &back, err));
    for (int i = 0; i < 6; i++) assert_true(back.samples[i] == want[i]);
    fac_sound_free(&back);
}

/* ---- files that lie ---- */

typedef struct file {
    unsigned char at[512];
    size_t n;
} file;
static void u(file *f, uint64_t x, int bytes) {
    for (int k = 0; k < bytes; k++) f->at[f->n++] = (unsigned char)(x >> 8 * k);
}
static void id(file *f, const char *s) { memcpy(f->at + f->n, s, 4), f->n += 4; }

/* A sound of 4 frames of two channels of 16 bits, with another number in one place; and what stands
 * in front of the data. */
typedef struct lie {
    const char *what, *chunk;
    int tag, channels;
    uint32_t rate;
    int align, bits;
    uint32_t fmt_size, data_size;
} lie;

static file written(const lie *l, const char *first, bool odd_chunk) {
    file f = { .n = 0 };
    id(&f, first);
    u(&f, 1000, 4);
    id(&f, "WAVE");
    if (odd_chunk) {
        id(&f, "LIST");
        u(&f, 3, 4);
        u(&f, 0, 4);
    }
    id(&f, "fmt ");
    u(&f, l->fmt_size, 4);
    u(&f, (uint64_t)l->tag, 2);
    u(&f, (uint64_t)l->channels, 2);
    u(&f, l->rate, 4);
    u(&f, (uint64_t)l->rate * (uint64_t)l->align, 4);
    u(&f, (uint64_t)l->align, 2);
    u(&f, (uint64_t)l->bits, 2);
    if (l->fmt_size == 40) {
        u(&f, 22, 2);
        u(&f, 16, 2);
        u(&f, 3, 4);
        u(&f, 1, 2);
        const unsigned char guid[] = { 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71 };
        memcpy(f.at + f.n, guid, sizeof guid);
        f.n += sizeof guid;
    }
    id(&f, "data");
    u(&f, l->data_size, 4);
    for (int k = 0; k < 8; k++) u(&f, (uint64_t)(k * 1000), 2);
    return f;
}

static const lie good = { "nothing", NULL, 1, 2, 8000, 4, 16, 16, 16 };

static void odd_but_true_files(void **state) {
    (void)state;
    const lie cases[] = { good,
                          { "extensible", NULL, 0xFFFE, 2, 8000, 4, 16, 40, 16 },
                          { "a stream", NULL, 1, 2, 8000, 4, 16, 16, 0xFFFFFFFF },
                          { "no size", NULL, 1, 2, 8000, 4, 16, 16, 0 },
                          { "a stream of SoX", NULL, 1, 2, 8000, 4, 16, 16, 0x7FFFF000 },
                          { "a stream of arecord", NULL, 1, 2, 8000, 4, 16, 16, 0x80000000 },
                          { "half a frame more", NULL, 1, 2, 8000, 4, 16, 16, 14 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int odd = 0; odd < 2; odd++) {
            const file f = written(&cases[k], "RIFF", odd);
            fac_sound s = { 0 };
            OK(fac_wav_decode(f.at, f.n, "test", &s, err));
            assert_int_equal(s.frames, cases[k].data_size == 14 ? 3 : 4);
            assert_true(s.samples[5] == 5000.f / 32768);
            fac_sound_free(&s);
        }
}

static void lies_are_named(void **state) {
    (void)state;
    const lie cases[] = {
        { "no channels", "fmt ", 1, 0, 8000, 4, 16, 16, 16 },
        { "300 channels", "fmt ", 1, 300, 8000, 600, 16, 16, 16 },
        { "0 Hz", "fmt ", 1, 2, 0, 4, 16, 16, 16 },
        { "4 GHz", "fmt ", 1, 2, 4000000000u, 4, 16, 16, 16 },
        { "align 0", "fmt ", 1, 2, 8000, 0, 16, 16, 16 },
        { "align 3", "fmt ", 1, 2, 8000, 3, 16, 16, 16 },
        { "align of 24 bits", "fmt ", 1, 2, 8000, 6, 16, 16, 16 },
        { "0 bits", "fmt ", 1, 2, 8000, 4, 0, 16, 16 },
        { "33 bits", "fmt ", 1, 2, 8000, 10, 33, 16, 16 },
        { "floats of 16 bits", "fmt ", 3, 2, 8000, 4, 16, 16, 16 },
        { "ADPCM", "fmt ", 2, 2, 8000, 4, 4, 16, 16 },
        { "a short format", "fmt ", 1, 2, 8000, 4, 16, 12, 16 },
        { "a format beyond the file", "fmt ", 1, 2, 8000, 4, 16, 4000, 16 },
        { "extensible and short", "fmt ", 0xFFFE, 2, 8000, 4, 16, 16, 16 },
        { "data beyond the file", "data", 1, 2, 8000, 4, 16, 16, 17 },
        { "2^31 + 4 bytes of data", "data", 1, 2, 8000, 4, 16, 16, 0x80000004 },
        { "2^32 - 2 bytes", "data", 1, 2, 8000, 4, 16, 16, 0xFFFFFFFE },
        { "65535 channels", "fmt ", 1, 65535, 8000, 4, 16, 16, 16 },
        { "257 channels", "fmt ", 1, 257, 8000, 514, 16, 16, 16 },
        { "a rate just above", "fmt ", 1, 2, 10000001, 4, 16, 16, 16 },
        { "the largest rate", "fmt ", 1, 2, 0xFFFFFFFF, 4, 16, 16, 16 },
        { "align of one channel", "fmt ", 1, 2, 8000, 2, 16, 16, 16 },
        { "align of four channels", "fmt ", 1, 2, 8000, 8, 16, 16, 16 },
        { "the largest align", "fmt ", 1, 2, 8000, 65535, 16, 16, 16 },
        { "7 bits in words", "fmt ", 1, 2, 8000, 4, 7, 16, 16 },
        { "17 bits in two bytes", "fmt ", 1, 2, 8000, 4, 17, 16, 16 },
        { "integers of 64 bits", "fmt ", 1, 2, 8000, 16, 64, 16, 16 },
        { "the most bits", "fmt ", 1, 2, 8000, 4, 65535, 16, 16 },
        { "floats of 0 bits", "fmt ", 3, 2, 8000, 4, 0, 16, 16 },
        { "floats of 24 bits", "fmt ", 3, 2, 8000, 6, 24, 16, 16 },
        { "floats with the align of integers", "fmt ", 3, 2, 8000, 4, 32, 16, 16 },
        { "tag 0", "fmt ", 0, 2, 8000, 4, 16, 16, 16 },
        { "A-law", "fmt ", 6, 2, 8000, 2, 8, 16, 16 },
        { "mu-law", "fmt ", 7, 2, 8000, 2, 8, 16, 16 },
        { "IMA ADPCM", "fmt ", 17, 2, 8000, 4, 4, 16, 16 },
        { "MP3 in WAV", "fmt ", 85, 2, 8000, 1, 0, 16, 16 },
        { "the last tag", "fmt ", 0xFFFF, 2, 8000, 4, 16, 16, 16 },
        { "an empty format", "fmt ", 1, 2, 8000, 4, 16, 0, 16 },
        { "a format of 15 bytes", "fmt ", 1, 2, 8000, 4, 16, 15, 16 },
        { "the largest format", "fmt ", 1, 2, 8000, 4, 16, 0xFFFFFFFF, 16 },
        { "one frame too many", "data", 1, 2, 8000, 4, 16, 16, 20 },
        { "2^31 - 1 bytes", "data", 1, 2, 8000, 4, 16, 16, 0x7FFFFFFF },
    };
    assert_true(sizeof cases / sizeof *cases >= 40);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int odd = 0; odd < 2; odd++) {
            const file f = written(&cases[k], "RIFF", odd);
            fac_error e = { 0 };
            fac_sound s = { 0 };
            if (!fac_wav_decode(f.at, f.n, "test", &s, &e)) fail_msg("%s was read", cases[k].what);
            if (!strstr(e.text, cases[k].chunk))
                fail_msg("%s: \"%s\" does not name the chunk", cases[k].what, e.text);
            assert_null(s.samples);
        }
    for (size_t n = 0; n < written(&good, "RIFF", true).n; n++) {
        const file f = written(&good, "RIFF", true);
        fac_sound s = { 0 };
        if (!fac_wav_decode(f.at, n, "test", &s, NULL))
            fail_msg("%zu bytes of %zu were read", n, f.n);
    }
    static const char *const others[] = { "RIFX", "RIFF", "JUNK", "\177ELF" };
    for (int k = 0; k < 4; k++) {
        file f = written(&good, others[k], false);
        if (k == 1) f.at[8] = 'A';
        fac_sound s = { 0 };
        assert_int_equal(fac_wav_decode(f.at, f.n, "test", &s, NULL), FAC_E_FORMAT);
    }
}

/* Floats may be anything: what no spectrum can be made of is refused, what is merely loud is
 * not. */
static void samples_are_numbers(void **state) {
    (void)state;
    static const double odd[] = { NAN, INFINITY, -INFINITY, 2e12, -1e30 };
    for (int bits = 32; bits <= 64; bits += 32)
        for (size_t k = 0; k <= sizeof odd / sizeof *odd; k++) {
            const lie l = {
                "floats", "data", 3, 2, 8000, bits / 4, bits, 16, 4 * (uint32_t)bits / 8
            };
            const double at[] = { 0.5, -32768, 1e6, k ? odd[k - 1] : 1 };
            file f = written(&l, "RIFF", false);
            fac_error e = { 0 };
            fac_sound s = { 0 };
            f.n -= 16;
            for (int i = 0; i < 4; i++) {
                const float single = (float)at[i];
                memcpy(f.at + f.n, bits == 32 ? (const void *)&single : &at[i], (size_t)bits / 8);
                f.n += (size_t)bits / 8;
            }
            const fac_status status = fac_wav_decode(f.at, f.n, "test", &s, &e);
            assert_int_equal(status, k ? FAC_E_FORMAT : FAC_OK);
            if (k) assert_non_null(strstr(e.text, "chunk \"data\": a sample is"));
            if (!k) assert_true(s.samples[1] == -32768 && s.samples[3] == 1);
            fac_sound_free(&s);
        }
}

static void large_files_say_so(void **state) {
    (void)state;
    file f = { .n = 0 };
    id(&f, "RF64"), u(&f, 0xFFFFFFFF, 4), id(&f, "WAVE");
    id(&f, "ds64"), u(&f, 28, 4), u(&f, 100, 8), u(&f, 4, 8), u(&f, 2, 8), u(&f, 0, 4);
    id(&f, "fmt "), u(&f, 16, 4), u(&f, 1, 2), u(&f, 1, 2), u(&f, 8000, 4), u(&f, 16000, 4),
        u(&f, 2, 2), u(&f, 16, 2);
    id(&f, "data"), u(&f, 0xFFFFFFFF, 4), u(&f, 16384, 2), u(&f, 49152, 2);
    fac_sound s = { 0 };
    OK(fac_wav_decode(f.at, f.n, "test", &s, err));
    assert_int_equal(s.frames, 2);
    assert_true(s.samples[0] == 0.5f && s.samples[1] == -0.5f);
    fac_sound_free(&s);
    f.at[28] = 200; /* ds64's size of the data */
    assert_int_equal(fac_wav_decode(f.at, f.n, "test", &s, NULL), FAC_E_FORMAT);
    for (int stream = 0; stream < 2; stream++) {
        memset(f.at + 28, stream ? 0xFF : 0, 8);
        OK(fac_wav_decode(f.at, f.n, "test", &s, err));
        assert_int_equal(s.frames, 2);
        fac_sound_free(&s);
    }
    memcpy(f.at + 12, "JUNK", 4);
    fac_error e = { 0 };
    assert_int_equal(fac_wav_decode(f.at, f.n, "test", &s, &e), FAC_E_FORMAT);
    assert_non_null(strstr(e.text, "chunk \"ds64\""));
}

/* ---- rates ---- */

static void rates_of_the_golden_signal(void **state) {
    (void)state;
    float x[GOLDEN_SAMPLES];
    const struct {
        int to;
        fac_resample_quality q;
        int length, at;
        double y, rms;
    } want[] = {
        { 22050, FAC_RESAMPLE_FAST, 11025, 100, -.162380509, .402699583 },
        { 22050, FAC_RESAMPLE_FAST, 11025, 5000, -.275307106, .402699583 },
        { 22050, FAC_RESAMPLE_BEST, 11025, 5000, -.27519443, 0 },
        { 8000, FAC_RESAMPLE_FAST, 4000, 100, -.196880702, .401318511 },
        { 16000, FAC_RESAMPLE_BEST, 8000, 100, 0, 0 },
    };
    golden_signal(x);
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        fac_tensor *t = NULL;
        double squares = 0;
        OK(fac_resample(x, GOLDEN_SAMPLES, GOLDEN_RATE, want[k].to, want[k].q, &t, err));
        const float *y = fac_tensor_data(t);
        assert_int_equal(fac_tensor_type(t).dims.d[0], want[k].length);
        for (int i = 0; i < want[k].length; i++) squares += (double)y[i] * y[i];
        const double expected = want[k].to == 16000 ? x[100] : want[k].y;
        if (fabs(y[want[k].at] - expected) > 2e-7)
            fail_msg("%d Hz: %.9f, expected %.9f", want[k].to, y[want[k].at], expected);
        if (want[k].rms > 0) assert_true(fabs(sqrt(squares / want[k].length) - want[k].rms) < 2e-7);
        fac_tensor_free(t);
    }
    fac_tensor *t = NULL;
    assert_int_equal(fac_resample(x, 10, 0, 8000, FAC_RESAMPLE_BEST, &t, NULL), FAC_E_ARGUMENT);
}

/* ---- rings ---- */

static void chunks_of_any_size(void **state) {
    (void)state;
    enum { N = 20000, LENGTH = 4000, HOP = 1500 };
    float *x = malloc(N * sizeof *x), window[LENGTH];
    for (int i = 0; i < N; i++) x[i] = (float)i;
    for (int chunk = 1; chunk <= 5000; chunk++) {
        fac_ring *r = NULL;
        int64_t first, next = 0;
        OK(fac_ring_new(LENGTH, HOP, &r, err));
        for (int at = 0; at < N; at += chunk) {
            fac_ring_put(r, x + at, N - at < chunk ? N - at : chunk);
            while (fac_ring_get(r, window, &first)) {
                assert_int_equal(first, next);
                assert_memory_equal(window, x + first, sizeof window);
                next += HOP;
            }
        }
        assert_int_equal(next, (1 + (N - LENGTH) / HOP) * HOP);
        assert_int_equal(fac_ring_dropped(r), 0);
        fac_ring_free(r);
    }
    fac_ring *r = NULL;
    int64_t first;
    OK(fac_ring_new(LENGTH, HOP, &r, err));
    fac_ring_put(r, x, N); /* nobody listened */
    assert_true(fac_ring_get(r, window, &first));
    assert_true(fac_ring_dropped(r) > 0 && first == fac_ring_dropped(r) * HOP);
    assert_memory_equal(window, x + first, sizeof window);
    fac_ring_free(r);
    free(x);
}

static void *writer(void *ring) {
    float part[137];
    for (int at = 0; at < 3000000; at += 137) {
        for (int k = 0; k < 137; k++) part[k] = (float)((at + k) % 65536);
        fac_ring_put(ring, part, 137);
    }
    return NULL;
}

/* Whatever is lost, what arrives is whole. */
static void two_threads(void **state) {
    (void)state;
    fac_ring *r = NULL;
    pthread_t t;
    float window[1000];
    int64_t first = 0;
    OK(fac_ring_new(1000, 400, &r, err));
    assert_int_equal(pthread_create(&t, NULL, writer, r), 0);
    while (first < 2990000) {
        if (!fac_ring_get(r, window, &first)) continue;
        for (int k = 0; k < 1000; k++)
            if (window[k] != (float)((first + k) % 65536))
                fail_msg("sample %lld is torn", (long long)first + k);
    }
    pthread_join(t, NULL);
    fac_ring_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_comes_back),
        cmocka_unit_test(full_scale_is_limited),
        cmocka_unit_test(odd_but_true_files),
        cmocka_unit_test(lies_are_named),
        cmocka_unit_test(samples_are_numbers),
        cmocka_unit_test(large_files_say_so),
        cmocka_unit_test(rates_of_the_golden_signal),
        cmocka_unit_test(chunks_of_any_size),
        cmocka_unit_test(two_threads),
    };
    return cmocka_run_group_tests_name("sound", tests, make_folder, remove_folder);
}
