/* What this machine is: instruction set, caches, rough speeds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include "backends/cpu/bits/bits.h"
#include "backends/cpu/bits/bits_tables.h"
#include "backends/cpu/bytes/amx.h"
#include "backends/cpu/bytes/bytes.h"
#include "backends/cpu/device/cpu.h"
#include "base/error.h"

extern const fac_simd fac_simd_base;
extern const fac_byte_kernels fac_bytes_base;
extern const fac_bit_kernels fac_bits_base;
#if defined(__x86_64__)
extern const fac_simd fac_simd_avx2, fac_simd_avx512;
extern const fac_byte_kernels fac_bytes_avx2, fac_bytes_avx512, fac_bytes_vnni;
#if FAC_AMX
extern const fac_byte_kernels fac_bytes_amx, fac_bytes_amx_always;
#endif
extern const fac_bit_kernels fac_bits_avx2, fac_bits_avx512, fac_bits_popcount;
extern const fac_bit_table_kernels fac_bit_tables_avx2, fac_bit_tables_avx512;
#endif

typedef struct choice {
    const fac_simd *simd;
    bool here;
} choice;

#if defined(__x86_64__)
/* Halves as f32 and back: not all compilers' __builtin_cpu_supports knows them. */
static bool has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

/* The best first; the last one always runs.  __builtin_cpu_supports looks at XCR0 too: the system
 * must save the registers. */
static int choices(choice to[3]) {
    int n = 0;
#if defined(__x86_64__)
    bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    bool wide = fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    to[n++] = (choice){ &fac_simd_avx512, wide };
    to[n++] = (choice){ &fac_simd_avx2, fma };
#endif
    to[n++] = (choice){ &fac_simd_base, true };
    return n;
}

static void append(fac_error *err, const char *name, bool first) {
    const size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, "%s%s", first ? "" : ", ", name);
}

fac_status fac_cpu_simd(const char *at_most, const fac_simd **out, fac_error *err) {
    choice c[3];
    int n = choices(c), from = 0;
    if (!at_most) at_most = getenv("FACULA_ISA");
    if (at_most) {
        while (from < n && strcmp(c[from].simd->name, at_most) &&
               !(from == n - 1 && !strcmp(at_most, "portable")))
            from++;
        if (from == n) {
            fac_raise(err, FAC_E_ARGUMENT, "instruction set \"%s\": this build has ", at_most);
            for (int i = 0; i < n && err; i++) append(err, c[i].simd->name, !i);
            if (err && strcmp(c[n - 1].simd->name, "portable")) append(err, "portable", false);
            return FAC_E_ARGUMENT;
        }
    }
    while (!c[from].here) from++;
    *out = c[from].simd;
    return FAC_OK;
}

#if defined(__x86_64__)
static bool is(const char *wish, const char *name) { return wish && !strcmp(wish, name); }

/* With vectors of 512 bits: FACULA_BYTES=vnni takes what is there without AMX, FACULA_BYTES=widened
 * what every such processor has, and FACULA_BYTES=amx takes AMX for small products too. */
static const fac_byte_kernels *wide_bytes(void) {
    const char *wish = getenv("FACULA_BYTES");
    if (is(wish, fac_bytes_avx512.name) || !__builtin_cpu_supports("avx512vnni"))
        return &fac_bytes_avx512;
#if FAC_AMX
    if (!is(wish, fac_bytes_vnni.name) && fac_cpu_amx())
        return is(wish, fac_bytes_amx.name) ? &fac_bytes_amx_always : &fac_bytes_amx;
#endif
    return &fac_bytes_vnni;
}
#endif

static const fac_byte_kernels *bytes_of(const fac_simd *s) {
#if defined(__x86_64__)
    if (s->lanes == 16) return wide_bytes();
    if (s->lanes == 8) return &fac_bytes_avx2;
#endif
    (void)s;
    return &fac_bytes_base;
}

/* Products of bits: FACULA_BITS=tables takes those that every processor of this set has. */
static const fac_bit_kernels *bits_of(const fac_simd *s) {
#if defined(__x86_64__)
    const char *wish = getenv("FACULA_BITS");
    const bool plain = wish && !strcmp(wish, fac_bits_avx512.name);
    if (s->lanes == 16)
        return __builtin_cpu_supports("avx512vpopcntdq") && !plain ? &fac_bits_popcount
                                                                   : &fac_bits_avx512;
    if (s->lanes == 8) return &fac_bits_avx2;
#endif
    (void)s;
    return &fac_bits_base;
}

static const fac_bit_table_kernels *bit_tables_of(const fac_simd *s) {
#if defined(__x86_64__)
    if (s->lanes == 16 && __builtin_cpu_supports("avx512vbmi")) return &fac_bit_tables_avx512;
    if (s->lanes == 8) return &fac_bit_tables_avx2;
#endif
    (void)s;
    return NULL;
}

/* Floats that one unit multiplies in a cycle: a vector; but AMD's processors of family 25 do 512
 * bits as two halves. */
static int unit_width(const fac_simd *s) {
#if defined(__x86_64__)
    unsigned a, b, c, d, version;
    if (s->lanes == 16 && __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx &&
        __get_cpuid(1, &version, &b, &c, &d))
        if ((version >> 8 & 15) + (version >> 20 & 255) == 25) return 8;
#endif
    return s->lanes;
}

static size_t cache(int name, size_t otherwise) {
    long n = sysconf(name);
    return n > 0 ? (size_t)n : otherwise;
}

/* The third cache of one core.  What the C library says may be that of the whole processor: twelve
 * caches of 32 MB are 384 MB to it, of which a core has one; the system knows, where it tells. */
static size_t third_cache(size_t all) {
    size_t kilobytes = 0;
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
    if (f && fscanf(f, "%zuK", &kilobytes) != 1) kilobytes = 0;
    if (f) fclose(f);
    return kilobytes && kilobytes < all >> 10 ? kilobytes << 10 : all;
}

fac_status fac_cpu_detect(fac_cpu *c, const char *isa, fac_error *err) {
    FAC_TRY(fac_cpu_simd(isa, &c->simd, err));
    c->bytes = bytes_of(c->simd);
    c->bits = bits_of(c->simd);
    c->bit_tables = bit_tables_of(c->simd);
#ifdef _SC_LEVEL1_DCACHE_SIZE
    c->l1 = cache(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
    c->l2 = cache(_SC_LEVEL2_CACHE_SIZE, 512 << 10);
    c->l3 = third_cache(cache(_SC_LEVEL3_CACHE_SIZE, 8 << 20));
#else
    c->l1 = cache(-1, 32 << 10);
    c->l2 = cache(-1, 512 << 10);
    c->l3 = cache(-1, 8 << 20);
#endif
    /* Two fused multiply-adds a cycle at 3 GHz; 20 GB/s a core, of memory a quarter of that after
     * the fourth.  Only ratios matter: estimates are compared with each other and with those of
     * memory-bound steps. */
    const double threads = c->pool.threads;
    c->flops = fac_cpu_speeds.hertz * fac_cpu_speeds.unit_flops * unit_width(c->simd) * threads;
    c->beyond = fac_cpu_speeds.memory * threads;
    c->bandwidth = fac_cpu_speeds.memory * (threads < 4 ? threads : 3 + threads / 4);
    return FAC_OK;
}

/* The line "model name : ..." of /proc/cpuinfo; other systems and architectures have only the
 * caches. */
void fac_cpu_model(const fac_cpu *c, char *to, size_t size) {
    char line[256], name[48] = "";
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && !*name && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon || colon[1] != ' ') continue;
        colon[2 + strcspn(colon + 2, "\n")] = 0;
        snprintf(name, sizeof name, "%.47s", colon + 2);
    }
    if (f) fclose(f);
    snprintf(to, size, "%s%scaches %zu K, %zu K, %zu K", name, *name ? ", " : "", c->l1 >> 10,
             c->l2 >> 10, c->l3 >> 10);
}
