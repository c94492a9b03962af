/* Weights of depthwise convolutions, [channel][tap] in memory, into local memory as [tap][channel]:
 * `wide` channels from `base` on.  A row has four floats more, so that the items of a warp, which
 * bring neighbouring taps, do not all meet in one bank.  AT_ONCE reads are asked for before the
 * first is waited for. */
#define TAPS (KR * KS)
enum { AT_ONCE = 8 };
static inline void bring_taps(local float *taps, global const MEMORY(IN) * w, long from, int wide,
                              int base, int channels) {
    for (int first = get_local_id(0); first < wide * TAPS; first += AT_ONCE * GROUP) {
        float v[AT_ONCE];
        UNROLL
        for (int k = 0; k < AT_ONCE; k++) {
            const int i = first + k * GROUP, channel = base + i / TAPS;
            const bool there = i < wide * TAPS && channel < channels;
            v[k] = LOAD1(IN, w, there ? from + channel * (long)TAPS + i % TAPS : from);
        }
        UNROLL
        for (int k = 0; k < AT_ONCE; k++) {
            const int i = first + k * GROUP;
            if (i < wide * TAPS) taps[i % TAPS * (wide + 4) + i / TAPS] = v[k];
        }
    }
}
