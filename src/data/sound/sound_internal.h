/* Between the readers of sounds. */
#ifndef FACULA_DATA_SOUND_INTERNAL_H
#define FACULA_DATA_SOUND_INTERNAL_H
#include "facula/data/sound.h"

/* Room for a sound, zeroed. */
fac_status fac_sound_new(int64_t frames, int channels, int rate, const char *name, fac_sound *out,
                         fac_error *err);
/* FAC_E_FORMAT, and the sound is gone, where a sample is not finite or above 2^40 times full scale,
 * so that no power of a spectrum is infinite.  chunk: what the file calls its samples. */
fac_status fac_sound_settle(fac_sound *s, const char *name, const char *chunk, fac_error *err);
/* Whether it begins as compressed sounds do that have a name of their own there. */
bool fac_sound_is_named(const void *data, size_t size);
/* Whether data of this size are those of a stream, whose writer could not go back to the header. */
bool fac_wav_is_open_ended(uint64_t size);
/* By libsndfile. */
fac_status fac_sndfile_decode(const void *bytes, size_t size, const char *name, fac_sound *out,
                              fac_error *err);

enum { FAC_SOUND_CHANNELS = 256, FAC_SOUND_RATE = 10000000 };
#endif
