/* Philox 4x32-10: ten rounds of two 32x32 -> 64 bit products over a 128-bit counter, with a 64-bit
 * key. J. Salmon, M. Moraes, R. Dror, D. Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
 * 2011. */
#include "base/rng.h"
#include <math.h>

enum { ROUNDS = 10, LANES = 8 };
static const uint32_t multiplier[2] = { 0xd2511f53u, 0xcd9e8d57u },
                      weyl[2] = { 0x9e3779b9u, 0xbb67ae85u };

/* LANES consecutive counters at once: the inner loop becomes vector code. */
static void philox_lanes(uint64_t key, uint64_t stream, uint64_t counter, uint32_t out[4][LANES]) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int l = 0; l < LANES; l++) {
        uint64_t c = counter + (unsigned)l;
        out[0][l] = (uint32_t)c;
        out[1][l] = (uint32_t)(c >> 32);
        out[2][l] = (uint32_t)stream;
        out[3][l] = (uint32_t)(stream >> 32);
    }
    for (int r = 0; r < ROUNDS; r++, k0 += weyl[0], k1 += weyl[1])
        for (int l = 0; l < LANES; l++) {
            uint64_t p = (uint64_t)multiplier[0] * out[0][l],
                     q = (uint64_t)multiplier[1] * out[2][l];
            out[0][l] = (uint32_t)(q >> 32) ^ out[1][l] ^ k0;
            out[2][l] = (uint32_t)(p >> 32) ^ out[3][l] ^ k1;
            out[1][l] = (uint32_t)q;
            out[3][l] = (uint32_t)p;
        }
}

void fac_philox(uint64_t key, uint64_t stream, uint64_t counter, uint32_t out[4]) {
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = (uint32_t)stream,
             c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int r = 0; r < ROUNDS; r++, k0 += weyl[0], k1 += weyl[1]) {
        uint64_t p = (uint64_t)multiplier[0] * c0, q = (uint64_t)multiplier[1] * c2;
        c0 = (uint32_t)(q >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)q;
        c3 = (uint32_t)p;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* A block holds two 64-bit numbers. */
static uint64_t word(const uint32_t block[4], int k) {
    return block[2 * k] | (uint64_t)block[2 * k + 1] << 32;
}
static double unit(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

uint64_t fac_random_bits(uint64_t seed, uint64_t stream, uint64_t i) {
    uint32_t block[4];
    fac_philox(seed, stream, i / 2, block);
    return word(block, (int)(i % 2));
}

double fac_random_uniform(uint64_t seed, uint64_t stream, uint64_t i) {
    return unit(fac_random_bits(seed, stream, i));
}

void fac_random_words_fill(uint64_t seed, uint64_t stream, uint64_t i, size_t n, uint64_t *to) {
    uint32_t words[4][LANES];
    for (size_t done = 0; done < n;) {
        const uint64_t first = i + done;
        const size_t skip = first % 2, room = 2 * LANES - skip,
                     take = n - done < room ? n - done : room;
        philox_lanes(seed, stream, first / 2, words);
        for (size_t k = skip; k < skip + take; k++) {
            const uint32_t low = words[2 * (k % 2)][k / 2], high = words[2 * (k % 2) + 1][k / 2];
            to[done + k - skip] = low | (uint64_t)high << 32;
        }
        done += take;
    }
}

void fac_random_uniforms(uint64_t seed, uint64_t stream, uint64_t i, size_t n, double *to) {
    enum { CHUNK = 8 * LANES };
    uint64_t bits[CHUNK];
    for (size_t done = 0; done < n; done += CHUNK) {
        const size_t take = n - done < CHUNK ? n - done : CHUNK;
        fac_random_words_fill(seed, stream, i + done, take, bits);
        for (size_t k = 0; k < take; k++) to[done + k] = unit(bits[k]);
    }
}

/* Two uniforms of a block make two normals: r cos t and r sin t with r = sqrt(-2 ln u), t = 2 pi v;
 * u is in (0, 1]. */
double fac_random_normal(uint64_t seed, uint64_t stream, uint64_t i) {
    uint32_t block[4];
    fac_philox(seed, stream, i / 2, block);
    double r = sqrt(-2 * log(1 - unit(word(block, 0)))),
           t = 2 * 3.14159265358979323846 * unit(word(block, 1));
    return i % 2 ? r * sin(t) : r * cos(t);
}

/* Number i is word i % 4 of block i / 4, its top 24 bits, so all numbers are exact multiples of
 * 2^-24 before scaling. */
void fac_random_fill(uint64_t seed, uint64_t stream, float lo, float hi, size_t n, float *to) {
    uint32_t words[4][LANES];
    float scale = (hi - lo) * 0x1p-24f;
    for (size_t i = 0; i < n; i += 4 * LANES) {
        size_t take = n - i < 4 * LANES ? n - i : 4 * LANES;
        philox_lanes(seed, stream, i / 4, words);
        for (size_t k = 0; k < take; k++)
            to[i + k] = lo + scale * (float)(words[k % 4][k / 4] >> 8);
    }
}
