/* libFuzzer: any bytes are a WAV file or an error; what was decoded can be mixed and resampled. */
#include "facula/data/sound.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fac_sound s = { 0 };
    fac_tensor *t = NULL;
    if (fac_wav_decode(data, bytes, "fuzz", &s, NULL)) return 0;
    if (s.frames < 1000 && !fac_sound_mono(&s, s.rate < 5000000 ? 2 * s.rate : s.rate, &t, NULL))
        fac_tensor_free(t);
    fac_sound_free(&s);
    return 0;
}
