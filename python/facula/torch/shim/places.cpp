// Which leaves of a segment its program keeps, and what for: see places.h.
#include "places.h"

namespace ocl {
// A leaf that came unchanged through two runs, or that each run writes, is kept by a program of its own: the
// device has it then, and what is computed of such leaves alone is computed once.  Single numbers stay inputs.
static constexpr size_t kLeastKept = 16;
static bool has_port(const Plan& plan, uint32_t slot, bool out) {
  for (auto& p : plan.parts)
    for (auto& port : out ? p.out : p.in)
      if (!port.kind && port.index == slot) return true;
  return false;
}
std::vector<uint32_t> leaves_of(const Run& run, const Plan& plain) {
  std::vector<uint32_t> leaves;
  for (uint32_t k = 0; plain.parts.size() == 1 && k < run.states.size(); k++)
    if (run.states[k]->alive && run.states[k]->bytes >= kLeastKept && has_port(plain, k, false)) leaves.push_back(k);
  return leaves;
}

// The place of this run: one that has half of its leaves at least, or a new one.  What was made after the first run does
// not count: those are results of other segments, other ones each time.
static constexpr size_t kPlaces = 64;
Place& place_of(const Run& run, Variant& v) {
  Place *best = nullptr, *oldest = nullptr;
  size_t most = 0, all = 0;
  for (uint32_t k : v.leaves) all += run.states[k]->uid < v.born;
  for (auto& p : v.places) {
    size_t same = 0;
    for (uint32_t k : v.leaves) same += run.states[k]->uid < v.born && p.seen[k].uid == run.states[k]->uid;
    if (2 * same >= all && (!best || same > most)) { most = same; best = &p; }
    if (!oldest || p.used < oldest->used) oldest = &p;
  }
  if (!best && v.places.size() < kPlaces) best = &v.places.emplace_back();
  else if (!best) {
    retire(oldest->bound);
    *oldest = {};
    best = oldest;
  }
  best->seen.resize(run.states.size());
  best->used = rec().flushes;
  return *best;
}

std::vector<uint32_t> stable(const Run& run, const Variant& v, Place& p) {
  std::vector<uint32_t> bind;
  if (p.binds >= 4) return bind;
  bool settled = true;
  for (uint32_t k : v.leaves) {
    State* s = run.states[k];
    Seen& was = p.seen[k];
    was.same = was.uid == s->uid ? was.same + 1 : 0;
    was.still = was.same && was.writes == s->writes ? was.still + 1 : 0;
    was.uid = s->uid;
    bool writes = has_port(v.plain, k, true);
    if (writes ? was.same >= 2 : was.still >= 2) bind.push_back(k);
    else if (was.same == 1) settled = false;
  }
  if (!settled) bind.clear();
  return bind;
}
bool still_held(const Run& run, const Place& place) {
  if (place.bound.parts.empty()) return false;
  size_t k = 0;
  for (auto& p : place.bound.parts)
    for (auto& [slot, writes] : p.bound) {
      if (k >= place.held.size() || place.held[k] != run.states[slot]->tensor_uid) return false;
      k++;
    }
  return true;
}
void hold(const Run& run, Place& place) {
  place.held.clear();
  for (auto& p : place.bound.parts)
    for (auto& [slot, writes] : p.bound) place.held.push_back(run.states[slot]->tensor_uid);
}
}  // namespace ocl
