/* Tensor maps: the copy engine brings boxes of rows of a tensor where it lies, swizzled as wgmma
 * reads them, with zeros where the tensor ends.  CUDA's host library writes such maps; here a
 * kernel makes its own: field by field in local memory, then copied to global memory, where the
 * engine reads them.  After nv_common.cl, with SM90A and MAPS defined: 1, strides are told in
 * bytes; 2, in 16 bytes, as assemblers before CUDA 12.5 want them. */
typedef struct nv_rows {
    ulong x; /* address; of numbers of 16 bits (f32: two); the rest in multiples of 16 bytes */
    uint  size, rows, heads, batches;           /* of a row; how many */
    ulong row, head, batch;                     /* bytes from one to the next */
    uint box; /* rows that are brought at once, 128 bytes of each */
} nv_rows;

#define NV_MAP_FIELD(field, x)                                                                     \
    asm volatile(SM90A "tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], " x           \
                       ";\n" ::"r"(at)                                                             \
                 : "memory")
#define NV_MAP_WORD(field, k, x)                                                                   \
    asm volatile(SM90A "tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], " k           \
                       ", %1;\n" ::"r"(at),                                                        \
                 "r"(x)                                                                            \
                 : "memory")
#define NV_MAP_STRIDE(k, x)                                                                        \
    asm volatile(SM90A "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], " k       \
                       ", %1;\n" ::"r"(at),                                                        \
                 "l"(MAPS == 2 ? (x) >> 4 : (x))                                                   \
                 : "memory")

/* By a warp: a map at `to`, through 128 bytes of local memory, both at multiples of 128 bytes.
 * Others of the group may use it after a barrier. */
INLINE void nv_map_make(uint at, global uchar *to, const nv_rows m, int lane) {
    nv_local_store(at + 4 * lane, 0);
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    if (lane == 0) {
        asm volatile(SM90A "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;\n"
                     ::"r"(at), "l"(m.x) : "memory");
        NV_MAP_FIELD("rank", "3");              /* counted from 0 */
        NV_MAP_WORD("box_dim", "0", 64);
        NV_MAP_WORD("box_dim", "1", m.box);
        NV_MAP_WORD("box_dim", "2", 1);
        NV_MAP_WORD("box_dim", "3", 1);
        NV_MAP_WORD("global_dim", "0", m.size);
        NV_MAP_WORD("global_dim", "1", m.rows);
        NV_MAP_WORD("global_dim", "2", m.heads);
        NV_MAP_WORD("global_dim", "3", m.batches);
        NV_MAP_STRIDE("0", m.row);
        NV_MAP_STRIDE("1", m.head);
        NV_MAP_STRIDE("2", m.batch);
        NV_MAP_WORD("element_stride", "0", 1);
        NV_MAP_WORD("element_stride", "1", 1);
        NV_MAP_WORD("element_stride", "2", 1);
        NV_MAP_WORD("element_stride", "3", 1);
        NV_MAP_FIELD("elemtype", "1");          /* 16 bits */
        NV_MAP_FIELD("interleave_layout", "0");
        NV_MAP_FIELD("swizzle_mode", "3");      /* of 128 bytes */
        NV_MAP_FIELD("fill_mode", "0");         /* zeros */
    }
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    asm volatile(
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
        "[%0], [%1], 128;" ::
            "l"(to),
        "r"(at)
        : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(to) : "memory");
}
/* The n maps of this group of items, in memory that has room for those of all groups from `place`
 * on. */
INLINE global uchar *maps_at(global uchar *maps, long place, int n) {
    return (global uchar *)(((ulong)(maps + place) + 127) / 128 * 128) +
           (long)get_group_id(0) * (n * 128);
}
/* Asks for a box: 128 bytes of its rows from number c on, from a row of a head of a batch on.  `b`
 * counts all of its bytes, also those that are not there. */
INLINE void nv_map_load(uint to, global const uchar *map, int c, int row, int head, int batch,
                        uint b) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
                 "l"(map), "r"(c), "r"(row), "r"(head), "r"(batch), "r"(b)
                 : "memory");
}
