/* Recordings of a data set that is larger than memory: they are read from their files when they are
 * needed, and the last ones that were stay, up to so many bytes. */
#ifndef FACULA_DATA_SOUND_BANK_H
#define FACULA_DATA_SOUND_BANK_H
#include "facula/data/sound.h"

typedef struct fac_sound_bank fac_sound_bank;

/* A recording: a file, or a stretch of one. */
typedef struct fac_sound_source {
    const char *path; /* copied */
    int64_t whole;    /* samples of the file at the bank's rate */
    int64_t from;     /* where the recording begins in it */
} fac_sound_source;

/* most: bytes of samples; a file that is larger is kept alone while it is in use. */
fac_status fac_sound_bank_new(int rate, int64_t most, size_t n, const fac_sound_source *sources,
                              fac_sound_bank **out, fac_error *err);
void fac_sound_bank_free(fac_sound_bank *b); /* NULL is fine */

/* The samples of a recording, from its first one to the end of the file.  They stay until _end of
 * the same source, which each successful call needs.  Any number of threads may have some in use;
 * files are decoded at the same time, as many as may stay.  A thread that has one in use and begins
 * another waits for ever if both are more than may stay. */
fac_status fac_sound_bank_begin(fac_sound_bank *b, int64_t source, const float **x, fac_error *err);
void fac_sound_bank_end(fac_sound_bank *b, int64_t source);
int64_t fac_sound_bank_bytes(fac_sound_bank *b); /* of samples that it holds */
int64_t fac_sound_bank_reads(fac_sound_bank *b); /* how often a file was read */

/* Samples of a sound at another rate. */
int64_t fac_sound_length(const fac_sound *s, int rate);
#endif
