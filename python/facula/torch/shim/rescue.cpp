// A call that refuses its data, say an index out of range, fails alone.  It and the calls after the last
// part that was computed are computed one by one, by torch's CPU kernels; what depends on it is lost.
#include "segment.h"
#include <unordered_set>

namespace ocl {
static std::vector<bool> wanted(const Run& run) {
  std::unordered_set<const State*> live;
  for (State* s : run.states)
    if (s->alive) live.insert(s);
  std::vector<bool> out(run.calls.size());
  for (size_t k = run.calls.size(); k-- > run.next;) {
    auto& c = run.calls[k];
    bool is = false;
    for (auto& o : c.out) is |= o.s && live.count(o.s);
    each_ref(c, [&](size_t i, size_t q) { is |= c.op->writes[i] && c.in[q].s && live.count(c.in[q].s); });
    out[k] = is;
    for (auto& r : c.in)
      if (is && r.s) live.insert(r.s);
  }
  return out;
}

// A call that writes all of a state and reads nothing of it.
static bool overwrites(const Call& c, size_t argument, const Ref& r) {
  static const std::unordered_set<std::string> names = {"aten::zero_", "aten::fill_.Scalar", "aten::fill_.Tensor", "aten::copy_",
                                                        "aten::normal_", "aten::uniform_"};
  return c.op->writes[argument] && (c.op->has_out || names.count(c.op->name)) && !r.offset &&
         c10::multiply_integers(r.sizes) * c10::elementSize(r.dtype) == r.s->bytes;
}
// What was lost is written anew.
static void make_room(const Call& c) {
  each_ref(c, [&](size_t i, size_t k) { if (c.in[k].s && c.in[k].s->lost && overwrites(c, i, c.in[k])) c.in[k].s->lost = false; });
}
void lose(const Call& c) {
  auto mark = [](State* s) { if (s && !s->block) s->lost = true; };
  for (auto& o : c.out) mark(o.s);
  each_ref(c, [&](size_t i, size_t k) { if (c.op->writes[i]) mark(c.in[k].s); });
}

// What was there before the segment stays as it was when a call fails that writes it, and the calls after it must not read that; what the
// segment made would be half made.
struct Spoiler {
  std::unordered_set<const State*> old, stale;          // stale: without a write that failed
  explicit Spoiler(const Run& run) {
    for (State* s : run.states)
      if (s->block) old.insert(s);
    for (auto& c : run.calls)
      for (auto& o : c.out) old.erase(o.s);
  }
  bool is_bad(const Call& c) const {
    bool bad = false;
    each_ref(c, [&](size_t i, size_t k) {
      auto& r = c.in[k];
      bad |= r.s && (r.s->lost || stale.count(r.s)) && !overwrites(c, i, r);
    });
    return bad;
  }
  void done(const Call& c) {
    each_ref(c, [&](size_t i, size_t k) { if (c.op->writes[i]) stale.erase(c.in[k].s); });
  }
  void operator()(State* s) {
    if (!s) return;
    if (old.count(s)) stale.insert(s);
    else state_lose(s);
  }
  void operator()(const Call& c) {
    for (auto& o : c.out) (*this)(o.s);
    each_ref(c, [&](size_t i, size_t k) { if (c.op->writes[i]) (*this)(c.in[k].s); });
  }
};

void rescue(Run& run) {
  const auto which = wanted(run);
  Spoiler spoil(run);
  for (size_t k = run.next; k < run.calls.size(); k++) {
    auto& c = run.calls[k];
    if (!which[k]) continue;
    if (spoil.is_bad(c)) { spoil(c); continue; }
    Stack st;
    try {
      make_room(c);
      replay(c, st);
      store(c, st);
      spoil.done(c);
    }
    catch (const std::exception&) { spoil(c); }      // the first such error is being thrown already
  }
}
}  // namespace ocl
