/* Four neighbours at once, as nvidia/unit/epilogue_text.c reads and writes them: f32 by 16 bytes,
 * bf16 and f16 by 8. */
INLINE void nv_four_f32(float *v, global const float *p) {
    const float4 x = *(global const float4 *)p;
    v[0] = x.s0;
    v[1] = x.s1;
    v[2] = x.s2;
    v[3] = x.s3;
}
INLINE float nv_one_f32(global const float *p) { return *p; }
INLINE void nv_put_f32(global float *p, const float *v) {
    *(global float4 *)p = (float4)(v[0], v[1], v[2], v[3]);
}

INLINE void nv_four_bf16(float *v, global const ushort *p) {
    const uint2 x = *(global const uint2 *)p;
    v[0] = as_float(x.s0 << 16);
    v[1] = as_float(x.s0 & 0xffff0000u);
    v[2] = as_float(x.s1 << 16);
    v[3] = as_float(x.s1 & 0xffff0000u);
}
INLINE float nv_one_bf16(global const ushort *p) { return as_float((uint)*p << 16); }
INLINE void nv_put_bf16(global ushort *p, const float *v) {
    *(global uint2 *)p = (uint2)(nv_pack_bf16(v[0], v[1]), nv_pack_bf16(v[2], v[3]));
}

INLINE void nv_two_f16(float *v, uint x) {
    asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %2;\ncvt.f32.f16 %0, l;\ncvt.f32.f16 %1, h;\n}\n"
        : "=f"(v[0]), "=f"(v[1])
        : "r"(x));
}
INLINE void nv_four_f16(float *v, global const ushort *p) {
    const uint2 x = *(global const uint2 *)p;
    nv_two_f16(v, x.s0);
    nv_two_f16(v + 2, x.s1);
}
INLINE float nv_one_f16(global const ushort *p) {
    float v[2];
    nv_two_f16(v, *p);
    return v[0];
}
INLINE void nv_put_f16(global ushort *p, const float *v) {
    *(global uint2 *)p = (uint2)(nv_pack_f16(v[0], v[1]), nv_pack_f16(v[2], v[3]));
}
