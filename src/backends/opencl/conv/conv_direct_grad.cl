/* The gradient of a convolution with few channels in a group by its weights: a group of items takes
 * one kernel (a channel of the result and one of the image) and a part of the images' pixels. Every
 * item sums all taps of its pixels, then the items are added up in a tree, in a fixed order; parts
 * are added by sum_parts. */
typedef struct {
    long image, channel, at, d, h, w;
} planes;
typedef struct {
    int D, H, W, O, P, Q, channels, rows, pad_t, pad_r, pad_s, images;
    planes x, y;
} direct;

#define TAPS_OF (KT * KR * KS)

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void direct_weights(
    const shape s, const direct d, global const MEM *restrict x, global const MEM *restrict dy,
    global ACC *parts) {
    local ACC team[ITEMS];
    const int id = get_local_id(0), c = get_group_id(0) % d.channels,
              row = get_group_id(0) / d.channels, part = get_group_id(1);
    const int pixels = d.O * d.P * d.Q, count = d.images * pixels, first = part * s.each_k;
    const int end = min(count, first + (int)s.each_k);
    global const MEM *image = x + d.x.at + (row / d.rows * (long)d.channels + c) * d.x.channel;
    global const MEM *plane = dy + d.y.at + row * d.y.channel;
    ACC sum[TAPS_OF];
    for (int i = 0; i < TAPS_OF; i++) sum[i] = 0;
    for (int i = first + id; i < end; i += ITEMS) {
        const int n = i / pixels, q = i % d.Q, p = i / d.Q % d.P, o = i / d.Q / d.P % d.O;
        const ACC g = LOAD(plane, n * d.y.image + o * d.y.d + p * d.y.h + q * d.y.w);
        global const MEM *from = image + n * d.x.image;
        for (int t = 0; t < KT; t++)
            for (int r = 0; r < KR; r++)
                for (int k = 0; k < KS; k++) {
                    const int a = o * ST + t * DT - d.pad_t, b = p * SR + r * DR - d.pad_r,
                              e = q * SS + k * DS - d.pad_s;
                    const bool inside =
                        (uint)a < (uint)d.D && (uint)b < (uint)d.H && (uint)e < (uint)d.W;
                    const ACC v = inside ? LOAD(from, a * d.x.d + b * d.x.h + e * d.x.w) : 0;
                    sum[(t * KR + r) * KS + k] += g * v;
                }
    }
    for (int tap = 0; tap < TAPS_OF; tap++) {
        team[id] = sum[tap];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int half_ = ITEMS / 2; half_ > 0; half_ /= 2) {
            if (id < half_) team[id] += team[id + half_];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (id == 0)
            parts[s.parts + ((long)part * get_num_groups(0) + get_group_id(0)) * TAPS_OF + tap] =
                team[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
