// Rates of one-bit matrix products on sm_90a:   nvcc -O3 -gencode arch=compute_90a,code=sm_90a -o bits_peak bits_peak.cu
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(x) do { cudaError_t e = (x); if (e) { printf("%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)

__device__ __forceinline__ void mma_and(int *d, const uint32_t *a, const uint32_t *b) {
    asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma_xor(int *d, const uint32_t *a, const uint32_t *b) {
    asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma_s8(int *d, const uint32_t *a, const uint32_t *b) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void wgmma_n256(int *d, uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}, %128, %129, p;\n}\n"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]), "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]), "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]), "+r"(d[23]), "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31]), "+r"(d[32]), "+r"(d[33]), "+r"(d[34]), "+r"(d[35]), "+r"(d[36]), "+r"(d[37]), "+r"(d[38]), "+r"(d[39]), "+r"(d[40]), "+r"(d[41]), "+r"(d[42]), "+r"(d[43]), "+r"(d[44]), "+r"(d[45]), "+r"(d[46]), "+r"(d[47]), "+r"(d[48]), "+r"(d[49]), "+r"(d[50]), "+r"(d[51]), "+r"(d[52]), "+r"(d[53]), "+r"(d[54]), "+r"(d[55]), "+r"(d[56]), "+r"(d[57]), "+r"(d[58]), "+r"(d[59]), "+r"(d[60]), "+r"(d[61]), "+r"(d[62]), "+r"(d[63]), "+r"(d[64]), "+r"(d[65]), "+r"(d[66]), "+r"(d[67]), "+r"(d[68]), "+r"(d[69]), "+r"(d[70]), "+r"(d[71]), "+r"(d[72]), "+r"(d[73]), "+r"(d[74]), "+r"(d[75]), "+r"(d[76]), "+r"(d[77]), "+r"(d[78]), "+r"(d[79]), "+r"(d[80]), "+r"(d[81]), "+r"(d[82]), "+r"(d[83]), "+r"(d[84]), "+r"(d[85]), "+r"(d[86]), "+r"(d[87]), "+r"(d[88]), "+r"(d[89]), "+r"(d[90]), "+r"(d[91]), "+r"(d[92]), "+r"(d[93]), "+r"(d[94]), "+r"(d[95]), "+r"(d[96]), "+r"(d[97]), "+r"(d[98]), "+r"(d[99]), "+r"(d[100]), "+r"(d[101]), "+r"(d[102]), "+r"(d[103]), "+r"(d[104]), "+r"(d[105]), "+r"(d[106]), "+r"(d[107]), "+r"(d[108]), "+r"(d[109]), "+r"(d[110]), "+r"(d[111]), "+r"(d[112]), "+r"(d[113]), "+r"(d[114]), "+r"(d[115]), "+r"(d[116]), "+r"(d[117]), "+r"(d[118]), "+r"(d[119]), "+r"(d[120]), "+r"(d[121]), "+r"(d[122]), "+r"(d[123]), "+r"(d[124]), "+r"(d[125]), "+r"(d[126]), "+r"(d[127]) : "l"(a), "l"(b));
#endif
}

__device__ __forceinline__ void wgmma_n128(int *d, uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, p;\n}\n"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]), "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]), "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]), "+r"(d[23]), "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31]), "+r"(d[32]), "+r"(d[33]), "+r"(d[34]), "+r"(d[35]), "+r"(d[36]), "+r"(d[37]), "+r"(d[38]), "+r"(d[39]), "+r"(d[40]), "+r"(d[41]), "+r"(d[42]), "+r"(d[43]), "+r"(d[44]), "+r"(d[45]), "+r"(d[46]), "+r"(d[47]), "+r"(d[48]), "+r"(d[49]), "+r"(d[50]), "+r"(d[51]), "+r"(d[52]), "+r"(d[53]), "+r"(d[54]), "+r"(d[55]), "+r"(d[56]), "+r"(d[57]), "+r"(d[58]), "+r"(d[59]), "+r"(d[60]), "+r"(d[61]), "+r"(d[62]), "+r"(d[63]) : "l"(a), "l"(b));
#endif
}

__device__ __forceinline__ void wgmma_rs_n256(int *d, const uint32_t *a, uint64_t b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}, {%128,%129,%130,%131}, %132, p;\n}\n"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]), "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]), "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]), "+r"(d[23]), "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31]), "+r"(d[32]), "+r"(d[33]), "+r"(d[34]), "+r"(d[35]), "+r"(d[36]), "+r"(d[37]), "+r"(d[38]), "+r"(d[39]), "+r"(d[40]), "+r"(d[41]), "+r"(d[42]), "+r"(d[43]), "+r"(d[44]), "+r"(d[45]), "+r"(d[46]), "+r"(d[47]), "+r"(d[48]), "+r"(d[49]), "+r"(d[50]), "+r"(d[51]), "+r"(d[52]), "+r"(d[53]), "+r"(d[54]), "+r"(d[55]), "+r"(d[56]), "+r"(d[57]), "+r"(d[58]), "+r"(d[59]), "+r"(d[60]), "+r"(d[61]), "+r"(d[62]), "+r"(d[63]), "+r"(d[64]), "+r"(d[65]), "+r"(d[66]), "+r"(d[67]), "+r"(d[68]), "+r"(d[69]), "+r"(d[70]), "+r"(d[71]), "+r"(d[72]), "+r"(d[73]), "+r"(d[74]), "+r"(d[75]), "+r"(d[76]), "+r"(d[77]), "+r"(d[78]), "+r"(d[79]), "+r"(d[80]), "+r"(d[81]), "+r"(d[82]), "+r"(d[83]), "+r"(d[84]), "+r"(d[85]), "+r"(d[86]), "+r"(d[87]), "+r"(d[88]), "+r"(d[89]), "+r"(d[90]), "+r"(d[91]), "+r"(d[92]), "+r"(d[93]), "+r"(d[94]), "+r"(d[95]), "+r"(d[96]), "+r"(d[97]), "+r"(d[98]), "+r"(d[99]), "+r"(d[100]), "+r"(d[101]), "+r"(d[102]), "+r"(d[103]), "+r"(d[104]), "+r"(d[105]), "+r"(d[106]), "+r"(d[107]), "+r"(d[108]), "+r"(d[109]), "+r"(d[110]), "+r"(d[111]), "+r"(d[112]), "+r"(d[113]), "+r"(d[114]), "+r"(d[115]), "+r"(d[116]), "+r"(d[117]), "+r"(d[118]), "+r"(d[119]), "+r"(d[120]), "+r"(d[121]), "+r"(d[122]), "+r"(d[123]), "+r"(d[124]), "+r"(d[125]), "+r"(d[126]), "+r"(d[127]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}

__device__ __forceinline__ void wgmma_rs_n128(int *d, const uint32_t *a, uint64_t b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, {%64,%65,%66,%67}, %68, p;\n}\n"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]), "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]), "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]), "+r"(d[23]), "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31]), "+r"(d[32]), "+r"(d[33]), "+r"(d[34]), "+r"(d[35]), "+r"(d[36]), "+r"(d[37]), "+r"(d[38]), "+r"(d[39]), "+r"(d[40]), "+r"(d[41]), "+r"(d[42]), "+r"(d[43]), "+r"(d[44]), "+r"(d[45]), "+r"(d[46]), "+r"(d[47]), "+r"(d[48]), "+r"(d[49]), "+r"(d[50]), "+r"(d[51]), "+r"(d[52]), "+r"(d[53]), "+r"(d[54]), "+r"(d[55]), "+r"(d[56]), "+r"(d[57]), "+r"(d[58]), "+r"(d[59]), "+r"(d[60]), "+r"(d[61]), "+r"(d[62]), "+r"(d[63]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}

__device__ __forceinline__ uint64_t descriptor(uint32_t at) { // rows of 128 bytes, swizzled
    return (uint64_t)((at >> 4) & 0x3fff) | (uint64_t)1 << 16 | (uint64_t)64 << 32 | (uint64_t)1 << 62;
}

template <int KIND> __global__ void run_mma(int n, int *y) {
    int d[8][4] = {};
    uint32_t a[2][4], b[4][2];
    for (int i = 0; i < 8; i++) a[i / 4][i % 4] = threadIdx.x * 0x9e3779b9u + i, b[i / 2][i % 2] = threadIdx.x * 0x85ebca6bu ^ i;
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            if (KIND == 0) mma_and(d[k], a[k & 1], b[k / 2]);
            if (KIND == 1) mma_xor(d[k], a[k & 1], b[k / 2]);
            if (KIND == 2) mma_s8(d[k], a[k & 1], b[k / 2]);
        }
    }
    int sum = 0;
    for (int k = 0; k < 8; k++) for (int e = 0; e < 4; e++) sum += d[k][e];
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void run_popc(int n, int *y) { // 64 ops each: an and of 32 bits, counted and added
    uint32_t a[8], b = threadIdx.x * 0x9e3779b9u;
    int d[8] = {};
    for (int i = 0; i < 8; i++) a[i] = threadIdx.x * 0x85ebca6bu + i;
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int k = 0; k < 8; k++) d[k] += __popc(a[k] & b);
        b = b * 3 + i;
    }
    int sum = 0;
    for (int k = 0; k < 8; k++) sum += d[k];
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern __shared__ __align__(1024) uint8_t tiles[]; // b: N rows of 128 bytes; a: 64 rows for each four warps

__device__ __forceinline__ uint32_t bits_of(int which, int row, int word) {
    uint32_t x = (which * 7919 + row) * 0x9e3779b9u + word * 0x85ebca6bu;
    x ^= x >> 15, x *= 0x2c1b3c6du, x ^= x >> 12, x *= 0x297a2d39u;
    return x ^ x >> 15;
}
template <int N, bool RS, bool check> __global__ void __launch_bounds__(256, 1) run_wgmma(int n, int *y) {
    const int rows = N + 64 * (blockDim.x / 128);
    for (int i = threadIdx.x; i < rows * 32; i += blockDim.x) {
        const int row = i / 32, word = i % 32, chunk = (word / 4) ^ (row & 7);
        ((uint32_t *)tiles)[row * 32 + chunk * 4 + word % 4] = bits_of(row >= N, row >= N ? row - N : row, word);
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    int d[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; i++) d[i] = 0;
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(tiles);
    const int group = threadIdx.x / 128, lane = threadIdx.x & 31, warp = threadIdx.x / 32 & 3;
    const uint64_t b = descriptor(at), a = descriptor(at + (N + 64 * group) * 128);
    uint32_t f[4][4];
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
        f[k][i] = bits_of(1, 64 * group + 16 * warp + lane / 4 + 8 * (i & 1), 8 * k + lane % 4 + 4 * (i >> 1));
#pragma unroll 1
    for (int i = 0; i < n; i++) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (N == 256 && !RS) wgmma_n256(d, a + 2 * k, b + 2 * k);
            if (N == 128 && !RS) wgmma_n128(d, a + 2 * k, b + 2 * k);
            if (N == 256 && RS) wgmma_rs_n256(d, f[k], b + 2 * k);
            if (N == 128 && RS) wgmma_rs_n128(d, f[k], b + 2 * k);
        }
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
#pragma unroll
        for (int e = 0; e < N / 2; e++) asm volatile("" : "+r"(d[e]) :: "memory");
    }
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
    int sum = 0;
#pragma unroll
    for (int i = 0; i < N / 2; i++) asm volatile("" : "+r"(d[i]) :: "memory");
#pragma unroll
    for (int i = 0; i < N / 2; i++) {
        sum += d[i];
        if (check) {
            const int row = 64 * group + 16 * warp + lane / 4 + 8 * (i >> 1 & 1), column = 8 * (i / 4) + 2 * (lane % 4) + (i & 1);
            int want = 0;
            for (int w = 0; w < 32; w++) want += __popc(bits_of(1, row, w) & bits_of(0, column, w));
            if (want != d[i]) atomicAdd(y, 1);
        }
    }
    if (!check) y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
__global__ void check_mma(int *y) {
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
    uint32_t a[4], b[2];
    int d[4] = {};
    for (int i = 0; i < 4; i++) a[i] = bits_of(1, g + 8 * (i & 1), t + 4 * (i >> 1));
    for (int i = 0; i < 2; i++) b[i] = bits_of(0, g, t + 4 * i);
    mma_and(d, a, b);
    for (int i = 0; i < 4; i++) {
        int want = 0;
        for (int w = 0; w < 8; w++) want += __popc(bits_of(1, g + 8 * (i / 2), w) & bits_of(0, 2 * t + i % 2, w));
        if (want != d[i]) atomicAdd(y, 1);
    }
}

static int units;
static int *y;
template <class F> static void time_it(const char *name, double ops, F launch) {
    cudaEvent_t from, to;
    cudaEventCreate(&from), cudaEventCreate(&to);
    float best = 1e30f;
    for (int i = 0; i < 6; i++) {
        float ms;
        cudaEventRecord(from);
        launch();
        cudaEventRecord(to);
        CHECK(cudaEventSynchronize(to));
        CHECK(cudaGetLastError());
        cudaEventElapsedTime(&ms, from, to);
        if (ms < best) best = ms;
    }
    printf("%-58s %9.1f TOPS  (%.3f ms)\n", name, ops / best * 1e-9, best);
}
template <int N, bool RS> static void time_wgmma(const char *name, int threads) {
    const int bytes = (N + 64 * (threads / 128)) * 128, n = 4000;
    int wrong = 0;
    CHECK(cudaFuncSetAttribute(run_wgmma<N, RS, true>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    CHECK(cudaFuncSetAttribute(run_wgmma<N, RS, false>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    CHECK(cudaMemset(y, 0, 4));
    run_wgmma<N, RS, true><<<1, threads, bytes>>>(1, y);
    CHECK(cudaMemcpy(&wrong, y, 4, cudaMemcpyDeviceToHost));
    printf("%s, operands as described: %s (%d)\n", name, wrong ? "WRONG" : "right", wrong);
    time_it(name, 2.0 * units * (threads / 128) * n * 4.0 * 64 * N * 256,
            [&] { run_wgmma<N, RS, false><<<units, threads, bytes>>>(n, y); });
}

int main() {
    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, 0));
    units = p.multiProcessorCount;
    int khz = 0, wrong = 0;
    cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
    printf("%s, %d units, %d MHz\n", p.name, units, khz / 1000);
    CHECK(cudaMalloc(&y, 1 << 24));
    CHECK(cudaMemset(y, 0, 4));
    check_mma<<<1, 32>>>(y);
    CHECK(cudaMemcpy(&wrong, y, 4, cudaMemcpyDeviceToHost));
    printf("mma.sync m16n8k256 b1, fragments as described: %s (%d)\n", wrong ? "WRONG" : "right", wrong);
    const int n = 20000;
    for (int threads = 128; threads <= 512; threads *= 2) {
        char name[96];
        const double mmas = 2.0 * units * 2 * (threads / 32) * 8.0 * n * 16 * 8;
        snprintf(name, sizeof name, "mma.sync m16n8k256 b1 and.popc, 2 x %d threads a unit", threads);
        time_it(name, mmas * 256, [&] { run_mma<0><<<units * 2, threads>>>(n, y); });
        snprintf(name, sizeof name, "mma.sync m16n8k32 s8, 2 x %d threads a unit", threads);
        time_it(name, mmas * 32, [&] { run_mma<2><<<units * 2, threads>>>(n, y); });
    }
    time_it("mma.sync m16n8k256 b1 xor.popc, 2 x 256 threads a unit", 2.0 * units * 2 * 8 * 8.0 * 2000 * 16 * 8 * 256,
            [&] { run_mma<1><<<units * 2, 256>>>(2000, y); });
    time_it("popc(a & b), 4 x 256 threads a unit", 2.0 * units * 4 * 256 * 8.0 * n * 32,
            [&] { run_popc<<<units * 4, 256>>>(n, y); });
    time_wgmma<256, false>("wgmma m64n256k256 b1 and.popc, 1 x 128 threads", 128);
    time_wgmma<256, false>("wgmma m64n256k256 b1 and.popc, 2 x 128 threads", 256);
    time_wgmma<128, false>("wgmma m64n128k256 b1 and.popc, 2 x 128 threads", 256);
    time_wgmma<256, true>("wgmma m64n256k256 b1, a in registers, 2 x 128 threads", 256);
    time_wgmma<128, true>("wgmma m64n128k256 b1, a in registers, 2 x 128 threads", 256);
    return 0;
}
