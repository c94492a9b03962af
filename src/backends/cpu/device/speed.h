/* What estimates of the cpu's solvers count on beside what fac_cpu_detect finds for a machine
 * (fac_cpu.flops, bandwidth, beyond): times of what one core does, in seconds, measured on x86 with
 * AVX-512 where a field says so.  Only ratios matter: estimates are compared with each other. */
#ifndef FACULA_CPU_SPEED_H
#define FACULA_CPU_SPEED_H

typedef struct fac_cpu_speed {
    double hertz;      /* cycles a second of a core whose clock is not known */
    double unit_flops; /* operations a cycle of a core, for each number of a vector */
    double memory;     /* bytes a second of memory for one core */
    double step;       /* a step besides its work: a fork and a join */
    double row_step;   /* ...of a product of one row, */
    double pack_step;  /* ...of packing weights in each run, */
    double bits_step;  /* ...of counting bits, */
    double table_step; /* ...and of tables of sums, which are made first */
    double chunk;      /* a meeting of all threads within a step */
    double reorder;    /* bringing a value into another layout, besides its bytes, ... */
    double reordered;  /* ...which are so many a second, both ways together: of 0.1 to 3 MB */
    /* Of one core, a second. */
    double chain_bytes;  /* a chain's steps: bytes of their widest type */
    double exponentials; /* softmax's numbers */
    double window_sums;  /* terms of a sum over neighbouring channels */
    double byte_pack;    /* weights of bytes that are packed in each run (of all cores) */
    /* Of one core, seconds each. */
    double gathered;   /* a number from anywhere */
    double scattered;  /* a number to anywhere */
    double random;     /* a random number */
    double dropped;    /* a number with its random number */
    double tree_node;  /* a node of a tree on the way to a leaf */
    double column_run; /* patches made into columns (AVX-512): a run of neighbours, ... */
    double column;     /* ...a number of it, */
    double column_far; /* ...and a number of a strided run */
} fac_cpu_speed;
extern const fac_cpu_speed fac_cpu_speeds;
#endif
