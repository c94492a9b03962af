/* Wisdom as `facula tune` writes it, and as it is shipped. */
#include <string.h>
#include "fuzz.h"

void fac_seeds(fac_seed_taker *take, void *self) {
    static const struct {
        const char *name, *data;
    } seeds[] = {
        { "two",
          "facula wisdom 1\n\ndevice cpu, avx512, 2 threads, A CPU\nconv/blocked:2 3 29.33 33.38 "
          "conv2d(f32[1,3,8,8], "
          "f32[4,3,3,3]) pad=1,1,1,1 {relu}\ngemm/packed 1 1e3 2.5 gemm(f32[4,4], f32[4,4])\n" },
        { "devices",
          "facula wisdom 1\ndevice opencl, 132 units, sm_90\nconv/wgmma 4 8.5 9.5 a problem\n"
          "device opencl, sm_90\nconv/wgmma:1 4 8.5 9.5 another\ndevice opencl\nx 1 0 0 third\n" },
        { "windows", "facula wisdom 1\r\n# by hand\r\ndevice cpu\r\nref 0 1 2 relu(f32[4])\r\nref "
                     "1 1 1 relu(f32[4])\r\n" },
        { "nothing", "facula wisdom 1\n" },
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        take(self, seeds[i].name, seeds[i].data, strlen(seeds[i].data));
}
