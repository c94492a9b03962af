/* Levels in rising order, the code of each, and the thresholds between them.  They are written
 * through a pointer: of structs that functions return, compilers of OpenCL C make words that
 * simulators of it do not know. */
#define MOST 16
typedef struct { float threshold[MOST]; uint code[MOST]; } levels;

static void set_levels(levels *l, global const float *v, const int planes) {
    float level[MOST];
    for (uint e = 0; e < 1u << planes; e++) {
        float sum = 0;
        for (int j = 0; j < planes; j++) if (e >> j & 1) sum += v[j];
        int k = (int)e;
        for (; k > 0 && level[k - 1] > sum; k--) {
            level[k] = level[k - 1];
            l->code[k] = l->code[k - 1];
        }
        level[k] = sum;
        l->code[k] = e;
    }
    for (int k = 0; k + 1 < 1 << planes; k++) l->threshold[k] = (level[k] + level[k + 1]) * 0.5f;
}
