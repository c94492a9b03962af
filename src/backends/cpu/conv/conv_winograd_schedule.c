/* How a convolution by Winograd's transforms is cut.
 *
 * Two schedules.  By tiles: a thread transforms a block of tiles into its own V, small enough for
 * its cache, and goes through all of U.  By chunks: a thread takes chunks of output channels of a
 * block of tiles, so that U, which is large where images are small, is read once, and many threads
 * have work where tiles are few.  There, too, it makes a V of its own: 30 ns for the 36 lines of a
 * tile and block of channels, which take as long to come from another core, and three times that
 * where the cores have no cache in common.  Only what no second cache holds is made once, by all
 * threads, and shared. */
#include <limits.h>
#include "backends/cpu/conv/conv_winograd.h"

/* Of the bandwidth: what a core reads from beyond its caches while it computes, measured (12 to 13
 * GB/s of 20). */
static const double FAR = 0.65;

/* Seconds of one way to cut the work: `block` tiles at a time, by tiles or by chunks.
 *
 * Bytes from beyond the second cache come while products are computed, so the slower of the two
 * counts; bytes from the second cache hold the products up a little.  U of all chunks is gone
 * through for each block: by tiles it stays in the cache if all of it fits beside V and M of a
 * block, by chunks if a thread's share does.  V stays if it fits beside M.  By chunks a thread
 * reads the inputs of each of its blocks from those who wrote them and makes V, or fetches it:
 * either counts as V fetched, by two threads, since more of them make it side by side. */
static double seconds_of(const fac_winograd_plan *p, bool by_chunk, int64_t block) {
    const int64_t lanes = p->cpu->simd->lanes, threads = p->cpu->pool.threads;
    double share = 1;
    if (by_chunk) share = (double)(p->chunks < threads ? p->chunks : threads);
    const double room = 0.75 * (double)p->cpu->l2, near = 3 * p->cpu->beyond;
    const int64_t points = fac_tiles_points(&p->tiles),
                  depth = fac_tiles_planes(&p->tiles) * p->g.C;
    const double u = 4.0 * (double)(depth * p->chunks * 2 * lanes),
                 v = 4.0 * (double)(depth * block);
    const double m = 4.0 * (double)(points * 2 * lanes * block),
                 blocks = (double)((p->tiles.count + block - 1) / block);
    const bool v_stays = v + m < room, u_stays = v + m + u / share < room;
    const double others = (double)threads / share,
                 own = blocks / (by_chunk && blocks > others ? others : 1);
    double far = ((u_stays ? others : blocks) - 1) *
                 u; /* all but the first time, when it may come from memory */
    if (!v_stays)
        far += blocks * v * (double)p->chunks;
    else if (by_chunk)
        far += own * v * (threads < 2 ? 1 : 2);

    /* tiles of a few pixels do not hide the latency of an addition */
    const double pixels =
        (double)block / (double)((block + p->cpu->simd->rows - 1) / p->cpu->simd->rows);
    const double full = 2 * pixels < 10 ? 2 * pixels / 10 : 1;
    const double waste = fac_cpu_waste((int64_t)blocks * (by_chunk ? p->chunks : 1), threads);
    const double products =
        (double)depth * (double)p->tiles.count * (double)(p->chunks * 2 * lanes);
    const double held_up = blocks * (u + v * (double)p->chunks) / near / 8;
    const double computed = 2 * products / (0.85 * full * p->cpu->flops) * waste + held_up;
    const double stream = far / (FAR * p->cpu->beyond) + u / (FAR * p->cpu->bandwidth);
    /* the tenth decides between ways that compute alike: what hardly waits now waits when others
     * use the memory, too */
    const double both = computed > stream ? computed + stream / 10 : stream + computed / 10;
    return both + (by_chunk && !v_stays ? blocks * fac_cpu_speeds.chunk : 0);
}

bool fac_winograd_schedule(fac_winograd_plan *p, int variant) {
    const fac_conv_geom *g = &p->g;
    const int asked = variant ? 1 << (variant - 1) % FAC_WINOGRAD_SIZES : 0;
    const fac_simd *s = p->cpu->simd;
    int64_t lanes = s->lanes, ins = (g->C + lanes - 1) / lanes, outs = (g->K + lanes - 1) / lanes,
            threads = p->cpu->pool.threads, block = 0;
    p->tiles = fac_tiles_of(p->w, g);
    p->chunks = fac_chunks(g->K, s->lanes);

    for (int by_chunk = 0; by_chunk < 2; by_chunk++)
        for (int k = 1; k <= 8; k++) {
            int64_t most = by_chunk ? p->tiles.count : (p->tiles.count + threads - 1) / threads;
            int64_t size = k * s->rows < most ? k * s->rows : most;
            double seconds = seconds_of(p, by_chunk, size);
            if (variant && (by_chunk != (variant > FAC_WINOGRAD_SIZES) || k != asked ||
                            size < (k / 2 + 1) * s->rows))
                continue;
            if (block && seconds >= p->seconds) continue;
            p->by_chunk = by_chunk;
            block = size;
            p->seconds = seconds;
        }
    if (!block) return false;
    p->blocks = (p->tiles.count + block - 1) / block;
    if (!p->by_chunk && p->blocks > threads && p->blocks % threads)
        p->blocks += threads - p->blocks % threads;
    if (p->blocks > p->tiles.count) p->blocks = p->tiles.count;
    if (p->blocks > INT_MAX / p->chunks) return false; /* both together are items of a call */
    block = (p->tiles.count + p->blocks - 1) / p->blocks;
    /* an odd number of vectors between the points keeps them on different sets of the first cache
     */
    p->v_point = (fac_tiles_depth(&p->tiles, 0) * ins * block | 1) * lanes;
    p->m_point = (2 * block | 1) * lanes;
    p->shared =
        p->by_chunk &&
        (size_t)(fac_winograd_v_floats(p) + fac_winograd_m_floats(p)) * sizeof(float) > p->cpu->l2;

    /* measured: about 100 cycles for 6 x 6 points of a tile and block, in and out alike; and the
     * image in and out of memory */
    const double points = (double)fac_tiles_points(&p->tiles),
                 more = (double)fac_tiles_planes(&p->tiles) / points;
    const double vectors = (double)p->tiles.count * (more * (double)ins + (double)outs);
    const double cycles = p->tiles.n <= 4   ? 30
                          : p->tiles.n <= 6 ? 110
                                            : 250,
                 hertz = p->cpu->flops / (4.0 * (double)lanes);
    const double image = 4.0 * (double)g->N *
                         (double)(g->C * g->H * g->W + g->K * g->P * g->Q / (p->pool * p->pool));
    /* less than a block of channels: the sums are as short as their way to M and back */
    const double few = g->C < lanes ? 3 * points * (double)(p->tiles.count * outs) : 0;
    p->seconds +=
        fac_cpu_speeds.step + (vectors * cycles + few) / hertz + image / (4 * p->cpu->bandwidth);
    return true;
}
