/* facula/data/sound.h: sounds from files and streams, their sampling rate, and data sets of them.
 *
 * Samples are floats, -1 to 1 at full scale: 16 bits are divided by 32,768.  WAV is read and
 * written by facula itself; FLAC, Ogg Vorbis, Opus, MP3 and others by libsndfile, which is opened
 * when such a file is met. */
#ifndef FACULA_SOUND_H
#define FACULA_SOUND_H

#include "facula/data/data.h"
#include "facula/tensor.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_sound {
    int64_t frames;     /* samples of one channel */
    int channels, rate; /* rate: frames a second */
    float *samples;     /* of all channels of a frame, frame by frame */
} fac_sound;
void fac_sound_free(fac_sound *s); /* and clears; an empty one is fine */

/* A file by its first bytes.  Errors: FAC_E_FORMAT with the chunk that is wrong, FAC_E_UNSUPPORTED
 * where libsndfile is needed and missing, FAC_E_IO, FAC_E_NOMEM.  On any error *out stays as it is.
 */
fac_status fac_sound_load(const char *path, fac_sound *out, fac_error *err);
/* WAV: RIFF, RF64 and BW64; 8, 16, 24 and 32 bits, f32 and f64, WAVE_FORMAT_EXTENSIBLE; chunks in
 * any order.  A data chunk of size 0 or 0xFFFFFFFF, as streams have it, reaches to the end.  name:
 * for errors. */
fac_status fac_wav_decode(const void *bytes, size_t size, const char *name, fac_sound *out,
                          fac_error *err);

typedef enum fac_wav_format {
    FAC_WAV_16,
    FAC_WAV_8,
    FAC_WAV_24,
    FAC_WAV_32,
    FAC_WAV_F32,
    FAC_WAV_F64
} fac_wav_format;
/* Integers are rounded and limited to full scale.  Sounds of 4 GB and more become RF64. */
fac_status fac_wav_save(const fac_sound *s, const char *path, fac_wav_format format,
                        fac_error *err);

/* ---- sampling rates ---- */

typedef enum fac_resample_quality {
    FAC_RESAMPLE_BEST, /* Kaiser window, 64 zeros: as libsoxr's high quality, within rms 1e-7 */
    FAC_RESAMPLE_FAST  /* Hann window, 6 zeros: torchaudio's default */
} fac_resample_quality;
/* ceil(n to / from) samples of one channel, f32 [that many], a new tensor.  Sinc interpolation with
 * coefficients in f64. */
fac_status fac_resample(const float *x, int64_t n, int from, int to, fac_resample_quality quality,
                        fac_tensor **out, fac_error *err);
/* Kernels of that interpolation, f32 [*phases, length], convolved with stride *step after padding
 * by *before in front. */
fac_status fac_resample_kernels(int from, int to, fac_resample_quality quality, int64_t *step,
                                int64_t *before, fac_tensor **out, fac_error *err);
/* All channels averaged, at this rate: f32 [samples], a new tensor. */
fac_status fac_sound_mono(const fac_sound *s, int rate, fac_tensor **out, fac_error *err);
/* The same in windows of `length` samples, one every `hop`, of which the last ends with the sound:
 * f32 [windows, length], a new tensor.  A shorter sound is one window, with silence after it. */
fac_status fac_sound_windows(const fac_sound *s, int rate, int64_t length, int64_t hop,
                             fac_tensor **out, fac_error *err);

/* ---- streams ---- */

/* The last samples of a stream, one writer and one reader in threads of their own: windows of
 * `length` samples, one every `hop`.  What the reader is too late for is dropped, and counted. */
typedef struct fac_ring fac_ring;
fac_status fac_ring_new(int64_t length, int64_t hop, fac_ring **out, fac_error *err);
/* Appends samples, by the writer; never waits. */
void fac_ring_put(fac_ring *r, const float *samples, int64_t n);
/* The next window into to[length]; false: it is not complete yet.  *first: number of its first
 * sample in the stream. */
bool fac_ring_get(fac_ring *r, float *to, int64_t *first);
int64_t fac_ring_dropped(const fac_ring *r); /* windows */
void fac_ring_free(fac_ring *r);             /* NULL is fine */

/* What is heard now: an ALSA device ("default", "hw:0"; libasound is opened at run time), or "-",
 * standard input: a WAV stream of this rate, or raw 16 bits, little endian, of one channel.
 * Channels are averaged.  One thread at a time. */
typedef struct fac_capture fac_capture;
fac_status fac_capture_open(const char *name, int rate, fac_capture **out, fac_error *err);
/* Waits for up to n samples; *count: how many there are, of a stream 0 at its end. */
fac_status fac_capture_read(fac_capture *c, float *to, int64_t n, int64_t *count, fac_error *err);
bool fac_capture_ends(const fac_capture *c); /* it is a stream, which waits for its reader */
void fac_capture_free(fac_capture *c);       /* NULL is fine */

/* A model that takes waveforms says at which rate, "8000", under this key. */
#define FAC_NOTE_RATE "facula.rate"
/* How many samples it takes at once, where its input leaves that open, and how far apart windows
 * begin, where the model carries states from one to the next. */
#define FAC_NOTE_WINDOW "facula.window"
#define FAC_NOTE_HOP "facula.hop"

/* ---- data sets ---- */

typedef struct fac_sounds_opts {
    int rate;       /* all become mono of this rate */
    double seconds; /* length of a sample; shorter ones are repeated, longer ones are cut into
                       windows */
    double hop;     /* of these windows, seconds; 0: half of it */
    double test;    /* part of the recordings that is for testing; 0: a tenth */
    uint64_t seed;  /* chooses them */
    const char
        *hold_out;  /* instead: recordings whose names have this between underscores or at an end */
    bool digits;    /* names say classes and speakers: CLASS_SPEAKER_INDEX.wav; without hold_out
                       indices 0   to 4 are for testing */
    bool zeros;     /* shorter ones are filled up with zeros */
    int64_t memory; /* bytes of samples that each part keeps in memory, 0: 2 GiB; of a larger one
                       recordings are read from their files again, and the last of them stay */
    const char *const *classes; /* what labels mean, others are refused; NULL: those that are met */
    int nclasses;
} fac_sounds_opts;
/* A folder of folders of sounds, one for each class; with digits a folder of sounds; or a table.
 * That is a file of records `FILE,label[,start,end]`, start and end in seconds, FILE relative to
 * the table's folder.  A first record that names columns (file, label, start, end, group) may give
 * them in another order; records of one file, or of one group where there are such, are one
 * recording when the parts are chosen.
 *
 * Waveforms f32 [rate seconds], as cuts: windows of one recording are never in both parts; those of
 * `train` are cut anew in each epoch.  train NULL: all of it is for testing.  FAC_E_FORMAT names
 * the file, of a table the line, that cannot be used. */
fac_status fac_dataset_sounds(const char *path, const fac_sounds_opts *opts, fac_dataset *train,
                              fac_dataset *test, fac_error *err);

/* Sounds, or stretches of sounds, that a path means: a file; all in a folder and in the folders in
 * it; the records of a table, as above.  Sorted as there. */
typedef struct fac_sound_files {
    int64_t count;
    const char *const *path;
    const double *start, *end; /* seconds; end 0: that of the file */
    struct fac_sound_files_memory *memory;
} fac_sound_files;
fac_status fac_sound_files_find(const char *path, fac_sound_files *out, fac_error *err);
void fac_sound_files_free(fac_sound_files *f); /* and clears; an empty one is fine */

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
