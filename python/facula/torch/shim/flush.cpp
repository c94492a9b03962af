// A flush: the open segment is found again by its hash, or given to Python (segment.py), which writes
// its calls into graphs by the aten table.  What comes back is a list of parts: programs, and calls
// that torch's CPU kernels compute.
#include "flush.h"
#include "segment.h"
#include <algorithm>
#include <chrono>

namespace ocl {
static std::unordered_map<uint64_t, Entry> entries;
static Builder builder_ = nullptr;
static std::vector<int64_t> answer_;
static std::string why_;
void set_builder(Builder b) { builder_ = b; }
void set_answer(std::vector<int64_t> code) { answer_ = std::move(code); }
void set_failure(std::string why) { why_ = std::move(why); }
size_t entry_count() { return entries.size(); }
static std::vector<int64_t> retired_;               // plans whose programs Python may free
std::vector<int64_t> retired() {
  std::lock_guard<std::recursive_mutex> g(rec().mu);
  std::vector<int64_t> out;
  out.swap(retired_);
  return out;
}
static void retire(const Plan& p) {
  if (p.id) retired_.push_back(p.id);
}
static void retire(const Variant& v) {
  retire(v.plain);
  for (auto& p : v.places) retire(p.bound);
}
void forget_plans() {
  std::lock_guard<std::recursive_mutex> g(rec().mu);
  for (auto& [key, e] : entries)
    for (auto& v : e.variants) retire(v);
  entries.clear();
}

// ---- a plan, made by Python
void drop(Call& c) {
  for (auto& r : c.in) if (r.s) state_drop(r.s);
  for (auto& r : c.out) if (r.s) state_drop(r.s);
}

// ---- what Python answers: see segment.py
static fac_dims dims_at(const std::vector<int64_t>& a, size_t& at) {
  fac_dims d = {(int)a[at++], {0}};
  for (int i = 0; i < d.n; i++) d.d[i] = a[at++];
  return d;
}
static Port port_at(const std::vector<int64_t>& a, size_t& at) {
  Port p;
  p.kind = (int)a[at++];
  p.index = (uint32_t)a[at++];
  p.dtype = (fac_dtype)a[at++];
  p.dims = dims_at(a, at);
  return p;
}
static Plan plan_at(const std::vector<int64_t>& a, size_t& at) {
  Plan plan;
  plan.id = a[at++];
  plan.parts.resize(a[at++]);
  for (auto& p : plan.parts) {
    p.host = a[at++];
    if (p.host) { p.call = (uint32_t)a[at++]; continue; }
    p.program = (fac_program*)a[at++];
    for (int64_t n = a[at++]; n > 0; n--) p.in.push_back(port_at(a, at));
    for (int64_t n = a[at++]; n > 0; n--) p.out.push_back(port_at(a, at));
    for (int64_t n = a[at++]; n > 0; n--) {
      uint32_t slot = (uint32_t)a[at++];
      bool writes = a[at++];
      p.bound.push_back({slot, writes});
    }
  }
  return plan;
}
static Plan build(const Run& run, const std::vector<uint8_t>& varying, std::vector<uint8_t>& fixed,
                  const Plan* bind_to, const std::vector<uint32_t>& bind) {
  auto& R = rec();
  auto t = std::chrono::steady_clock::now();
  TORCH_CHECK(builder_, "ocl: facula.torch was not imported");
  std::string text = json(run, varying, fixed, bind_to, bind);
  why_ = "";
  answer_.clear();
  int bad = builder_(text.c_str());
  TORCH_CHECK(!bad && !answer_.empty(), "ocl: ", why_.empty() ? "a segment could not be planned" : why_);
  size_t at = 0;
  Plan plan = plan_at(answer_, at);
  for (int64_t n = answer_[at++]; n > 0; n--) fixed[answer_[at++]] = 1;
  R.builds++;
  R.build_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
  return plan;
}

// ---- which program runs

// A leaf that came unchanged through two runs, or that each run writes, is kept by a program of its own: the
// device has it then, and what is computed of such leaves alone is computed once.  Single numbers stay inputs.
static constexpr size_t kLeastKept = 16;
static bool has_port(const Plan& plan, uint32_t slot, bool out) {
  for (auto& p : plan.parts)
    for (auto& port : out ? p.out : p.in)
      if (!port.kind && port.index == slot) return true;
  return false;
}
static std::vector<uint32_t> leaves_of(const Run& run, const Plan& plain) {
  std::vector<uint32_t> leaves;
  for (uint32_t k = 0; plain.parts.size() == 1 && k < run.states.size(); k++)
    if (run.states[k]->alive && run.states[k]->bytes >= kLeastKept && has_port(plain, k, false)) leaves.push_back(k);
  return leaves;
}

// The place of this run: one that has half of its leaves at least, or a new one.  What was made after the first run does
// not count: those are results of other segments, other ones each time.
static constexpr size_t kPlaces = 64;
static Place& place_of(const Run& run, Variant& v) {
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

static std::vector<uint32_t> stable(const Run& run, const Variant& v, Place& p) {
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
static bool still_held(const Run& run, const Place& place) {
  if (place.bound.parts.empty()) return false;
  size_t k = 0;
  for (auto& p : place.bound.parts)
    for (auto& [slot, writes] : p.bound) {
      if (k >= place.held.size() || place.held[k] != run.states[slot]->tensor_uid) return false;
      k++;
    }
  return true;
}
static void hold(const Run& run, Place& place) {
  place.held.clear();
  for (auto& p : place.bound.parts)
    for (auto& [slot, writes] : p.bound) place.held.push_back(run.states[slot]->tensor_uid);
}

static Variant& variant_of(Run& run, Entry& e) {
  if (e.fixed.empty()) e.fixed.resize(run.numbers.size());
  std::vector<uint8_t> varying(run.numbers.size());
  for (auto& v : e.variants) {
    bool fits = v.values.size() == run.numbers.size();
    for (size_t i = 0; fits && i < run.numbers.size(); i++) fits = v.varying[i] || v.values[i] == run.numbers[i];
    if (fits) return v;
  }
  if (!e.variants.empty()) {
    auto& last = e.variants.back();
    for (size_t i = 0; i < varying.size(); i++)
      varying[i] = !e.fixed[i] && (last.varying[i] || !(last.values[i] == run.numbers[i]));
  }
  size_t number = 0;
  for (auto& c : run.calls) {                       // seeds change in each run
    std::vector<Num> of;
    numbers_of(c, of);
    number += of.size();
    if (c.op->random) varying[number - 1] = 1;
  }
  if (e.variants.size() >= 16) {
    retire(e.variants.front());
    e.variants.erase(e.variants.begin());
  }
  Variant v;
  v.values = run.numbers;
  v.plain = build(run, varying, e.fixed, nullptr, {});
  for (size_t i = 0; i < varying.size(); i++) varying[i] &= !e.fixed[i];
  v.varying = varying;
  v.leaves = leaves_of(run, v.plain);
  v.born = next_uid();
  e.variants.push_back(std::move(v));
  return e.variants.back();
}

// Whether a call writes what is kept, or writes nothing and is there for its errors.
static bool matters(const Call& c) {
  bool writes = !c.out.empty(), kept = false;
  for (auto& o : c.out) kept |= o.s && o.s->alive;
  each_ref(c, [&](size_t i, size_t k) {
    if (!c.op->writes[i]) return;
    writes = true;
    kept |= c.in[k].s && c.in[k].s->alive;
  });
  return kept || !writes;
}

static void compute(Run& run, uint64_t key) {
  auto& R = rec();
  R.kept = 0;
  uint64_t before = R.builds;
  Variant& v = variant_of(run, entries[key]);
  if (R.builds == before) R.replays++;
  Place& place = place_of(run, v);
  if (still_held(run, place)) {
    R.kept = place.held.size();
    run_plan(run, place.bound);
    return;
  }
  auto bind = stable(run, v, place);
  if (!bind.empty()) {
    place.binds++;
    retire(place.bound);
    place.bound = {};                               // building may fail, and frees what was retired
    place.bound = build(run, v.varying, entries[key].fixed, &v.plain, bind);
    hold(run, place);
    R.kept = place.held.size();
    run_plan(run, place.bound);
    return;
  }
  run_plan(run, v.plain);
  for (uint32_t k : v.leaves) place.seen[k].writes = run.states[k]->writes;
}

void flush(const char*) {
  auto& R = rec();
  std::lock_guard<std::recursive_mutex> g(R.mu);
  if (R.calls.empty()) return;
  Run run;
  run.calls.swap(R.calls);
  run.states.swap(R.states);
  for (State* s : run.states) s->refs++;
  run.device = R.device;
  run.precision = precision_name(R.precision);
  uint64_t h = mix(mix(R.hash, run.device), R.precision + 1);
  R.segment++;
  R.next_value = 0;
  R.hash = 0;
  R.precision = PRECISION_OPEN;
  R.flushes++;
  if (std::none_of(run.calls.begin(), run.calls.end(), matters)) return;
  for (State* s : run.states) h = mix(h, s->alive);
  for (auto& c : run.calls) numbers_of(c, run.numbers);
  if (entries.size() > 1024) forget_plans();
  try { compute(run, h); }
  catch (...) {                                     // what was there is left as it was
    if (run.refused) rescue(run);
    else
      for (auto& c : run.calls) lose(c);
    throw;
  }
}
}  // namespace ocl
