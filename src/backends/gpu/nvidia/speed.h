/* What estimates of the solvers for NVIDIA's matrix units count on: measured on an H200, and fitted
 * to measurements there where a field says so.  Bytes are a second's, of all units unless a field
 * says otherwise; times are seconds. */
#ifndef FACULA_GPU_NVIDIA_SPEED_H
#define FACULA_GPU_NVIDIA_SPEED_H
#include "backends/gpu/nvidia/mode.h"

typedef struct fac_nv_speed {
    double unit[4];              /* multiply-adds a second of a unit by wgmma, by fac_nv_mode */
    double mma_unit;             /* ...by mma.sync, of TF32, where a group may have 163 KiB */
    double mma_unit_small;       /* ...and where it may have less */
    double memory;               /* products and convolutions at their best */
    double memory_unfitted;      /* convolutions whose estimate was not fitted */
    double winograd_memory;      /* images of Winograd's transforms */
    double split_memory;         /* partial sums of a split sum */
    double attention_memory;     /* the scratch of attention */
    double pack, winograd_pack;  /* weights that are packed in each run */
    double unit_cache;           /* one unit from the second cache */
    double unit_results;         /* results from one unit */
    double launch, split_launch; /* a launch; the second one of a split sum */
    double pack_launch;          /* the one that packs weights */
    double tile;                 /* begin and end of a tile */
    double kept_moments;         /* the moments of a convolution that keeps them */
    double joining;              /* the launch that joins moments */
    double rows_launch;          /* conv/rows beside its launches */
    double winograd_slice;       /* the launches of a slice of a Winograd convolution */
    double clock;                /* cycles a second */
} fac_nv_speed;
extern const fac_nv_speed fac_nv_speeds;

/* Of conv/stream_tiles.c, fitted: see there for what they are multiplied with. */
typedef struct fac_nv_stream_speed {
    double row, way, together, steps; /* step_clocks; how its parts add up (fac_nv_both) */
    double staged;                    /* end_clocks: bytes a clock */
    double staged_moving;             /* what is read and summed adds to them */
    double direct, moving, wide, sums, wide_sums, wide_moments;
    double finish;           /* clocks of a tile */
    double unhidden;         /* the share of them that staging leaves */
    double teams;            /* how two teams add up */
    double bandwidth, all;   /* of memory; how moving bytes and work add up */
    double launch;           /* seconds */
    double joining, moments; /* seconds of that launch, bytes a second of what it joins */
} fac_nv_stream_speed;
/* x by copies; x by maps, fitted to the 1 x 1 convolutions of ResNet-50's training at batch 64, in
 * TF32, each by all tiles. */
extern const fac_nv_stream_speed fac_nv_stream_copied, fac_nv_stream_mapped;

/* Of conv/rows_tiles.c, fitted. */
typedef struct fac_nv_tile_speed {
    double one_tap, taps;   /* seconds of waiting for a k-tile's pixels */
    double ahead;           /* by so much less where it is ahead */
    double results;         /* bytes a second */
    double images, sums;    /* what an image to read and a norm's sums add to them */
    double start, apart;    /* seconds of a tile; rounds by which units get out of step */
    double three, two, one; /* of the rate, by so many teams */
    double power;           /* how multiplying and waiting add up (fac_nv_both) */
} fac_nv_tile_speed;
extern const fac_nv_tile_speed fac_nv_tile_tf32, fac_nv_tile_others;

/* Of nvidia/grad_w: gradients by weights, of a multiprocessor. */
typedef struct fac_nv_grad_w_speed {
    double taps, narrow, tiles, halves;    /* bytes a second from the second cache, by kernels */
    double rounded, split, as_they_are;    /* of the units' rate, by what operands need */
    double end, end_bytes;                 /* a group's part: its end, bytes a second of it */
    double launch, apart;                  /* the launch; one that adds parts */
    double memory;                         /* of fac_gpu_bandwidth */
    double mma_wave, mma_memory, mma_idle; /* by mma.sync: a round, memory, few items' share */
} fac_nv_grad_w_speed;
extern const fac_nv_grad_w_speed fac_nv_grad_w_speeds;

/* Of nvidia/relay, fitted to chains of layers of seven forms in all cuts on an H100, a tenth off on
 * average. */
typedef struct fac_nv_relay_speed {
    double leg, unit_bytes;    /* a leg of bytes: itself, bytes a second of a unit */
    double conv, turn, work;   /* a leg of a convolution, each turn, its multiplications */
    double three;              /* how many times as many of these 3xTF32 has */
    double unit_cache, memory; /* bytes a second from the second cache; of memory's */
    double pack_launch;        /* the one that packs weights */
    double window, tap;        /* a turn of few taps; each of many */
} fac_nv_relay_speed;
extern const fac_nv_relay_speed fac_nv_relay_speeds;

/* Of conv/warps_tiles.c, fitted to layers of ResNet-50, MobileNetV2 and GoogLeNet at
 * batch 1, cut in all ways. */
typedef struct fac_nv_warps_speed {
    double launch, turn, wait; /* a launch; a turn of a unit; each wait in it for operands */
    double group, unit_cache;  /* a group; bytes a second from the second cache */
} fac_nv_warps_speed;
extern const fac_nv_warps_speed fac_nv_warps_speeds;

/* Of nvidia/attention, fitted to attentions of 49 to 512 keys of heads of 32 and 64 at batch 1 to
 * 64. */
typedef struct fac_nv_attention_speed {
    double begin, tile; /* by wgmma: the launch; each tile that a unit takes after the other */
    double share;       /* of the units' rate */
    double masked;      /* seconds of a unit for each element of a mask */
    double pack;        /* a launch that makes images */
    double warps_begin, warps_share; /* by mma.sync: the launch; of the units' rate */
    double wait;                     /* of a warp for 16 keys, while others work */
} fac_nv_attention_speed;
extern const fac_nv_attention_speed fac_nv_attention_speeds;

/* Of conv/mma_tiles.c. */
typedef struct fac_mma_conv_speed {
    double wait, tile, results; /* for a k-tile; begin and end of a tile; bytes a second */
    double some, few, shallow;  /* of the rate: of four warps, of fewer, of few stages */
    double apart;               /* rounds by which units get out of step */
} fac_mma_conv_speed;
extern const fac_mma_conv_speed fac_mma_conv_speeds;
#endif
