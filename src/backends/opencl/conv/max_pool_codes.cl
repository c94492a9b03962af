/* A max pool of codes: an item has a word of 32 channels of one pixel.  hit[k] has the channels of
 * which some tap has level k, so the largest level of each channel is found from the top.  All is
 * plain.  Options: those of elements.cl; PLANES; SIGNS: levels are -1 and 1. */
typedef struct {
    long x, basis, y;
    long units, images, H, W, P, Q, words, R, S, stride_h, stride_w, dilation_h, dilation_w, pad_h,
         pad_w;
} numbers;
#define LEVELS (1 << PLANES)

/* The code of each level in rising order. */
static void codes_of(global const float *v, uint *code) {
    float level[LEVELS];
    for (uint e = 0; e < LEVELS; e++) {
        float sum = 0;
        int k = (int)e;
#ifdef SIGNS
        sum = (float)e;
#else
        for (int j = 0; j < PLANES; j++) if (e >> j & 1) sum += v[j];
#endif
        for (; k > 0 && level[k - 1] > sum; k--) {
            level[k] = level[k - 1];
            code[k] = code[k - 1];
        }
        level[k] = sum;
        code[k] = e;
    }
}

kernel void pool(const numbers s, global const uint *x, global const float *basis,
                 global uint *y) {
    const pos unit = (pos)get_global_id(0), words = (pos)s.words;
    if (unit >= (pos)s.units) return;
    const pos word = unit % words, place = unit / words, q = place % (pos)s.Q,
        p = place / (pos)s.Q % (pos)s.P, image = place / (pos)(s.Q * s.P);
    const pos all = (pos)(s.images * s.H * s.W) * words;
    uint code[LEVELS], hit[LEVELS], found[PLANES];
    codes_of(basis + s.basis, code);
    for (int k = 0; k < LEVELS; k++) hit[k] = 0;
    for (pos r = 0; r < (pos)s.R; r++)
        for (pos t = 0; t < (pos)s.S; t++) {
            const pos row = p * (pos)s.stride_h + r * (pos)s.dilation_h - (pos)s.pad_h;
            const pos column = q * (pos)s.stride_w + t * (pos)s.dilation_w - (pos)s.pad_w;
            if (row < 0 || row >= (pos)s.H || column < 0 || column >= (pos)s.W) continue;
            global const uint *from =
                x + s.x + ((image * (pos)s.H + row) * (pos)s.W + column) * words + word;
            for (int k = 0; k < LEVELS; k++) {
                uint has = ~0u;
                for (int j = 0; j < PLANES; j++)
                    has &= code[k] >> j & 1 ? from[j * all] : ~from[j * all];
                hit[k] |= has;
            }
        }
    uint left = ~0u;
    hit[0] = ~0u;
    for (int j = 0; j < PLANES; j++) found[j] = 0;
    for (int k = LEVELS - 1; k >= 0; k--) {
        const uint here = hit[k] & left;
        left &= ~here;
        for (int j = 0; j < PLANES; j++) if (code[k] >> j & 1) found[j] |= here;
    }
    for (int j = 0; j < PLANES; j++) y[s.y + j * (pos)s.units + unit] = found[j];
}
