/* Indices that are data, counted from both ends.  The first one that is out of range is told to the
 * host (complaint.c): told[0] is 0 until then, after it stand the step that it was in, the index,
 * and the size of its dim. */
static inline bool outside(long place, long given, long size, global long *told, long step) {
    if (place >= 0 && place < size) return false;
    if (atomic_cmpxchg((volatile global int *)told, 0, 1) == 0) {
        told[1] = step;
        told[2] = given;
        told[3] = size;
    }
    return true;
}
