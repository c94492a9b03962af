/* Floats of weights in blocks, a unit of eight numbers an item.  After blocks.cl.  Options: those
 * of elements.cl; TYPE_*, BYTES of a block, UNITS in one. */
typedef struct { long x, y, count; } numbers;

kernel void floats(const numbers s, global const uchar *x, global float *y) {
    const long i = (long)get_global_id(0), block = i / UNITS;
    if (i >= s.count) return;
    const unit v = unit_of(x + s.x + block * BYTES, (int)(i % UNITS));
    global float *to = y + s.y + block * (8 * UNITS) + v.at;
    vstore4(v.a, 0, to);
    vstore4(v.b, 0, to + v.apart);
}
