// A flush: the open segment is found again by its hash, or given to Python (segment.py), which writes
// its calls into graphs by the aten table.  What comes back is a list of parts: programs, and calls
// that torch's CPU kernels compute.
#include "flush.h"
#include <ATen/Functions.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

namespace ocl {

// ---- numbers: scalars and tensors of the host without dims.  Constants of a program until they change.
struct Num {
  bool whole = false;
  double d = 0;
  int64_t i = 0;
  bool operator==(const Num& o) const {
    return whole == o.whole && (whole ? i == o.i : d == o.d || (std::isnan(d) && std::isnan(o.d)));
  }
};
static Num num_of(const c10::IValue& v) {
  if (v.isInt()) return {true, (double)v.toInt(), v.toInt()};
  if (v.isBool()) return {true, (double)v.toBool(), v.toBool()};
  if (v.isDouble()) return {false, v.toDouble(), 0};
  return {};
}
static Num num_of(const at::Tensor& t) {
  if (t.is_complex()) return {};
  if (t.is_floating_point()) return {false, t.to(at::kDouble).item<double>(), 0};
  int64_t i = t.to(at::kLong).item<int64_t>();
  return {true, (double)i, i};
}
static void numbers_of(const Call& c, std::vector<Num>& out) {
  Below b;
  each_ref(c, [&](size_t, size_t k) {
    if (!c.in[k].s && c.in[k].host.defined()) out.push_back(num_of(c.in[k].host));
  });
  for (size_t i = 0; i < c.other.size(); i++) {
    auto& v = c.other[i];
    if (v.isNone() || c.count[i] >= 0 || !is_lifted(*c.op, i, v)) continue;
    if (v.isList())
      for (const c10::IValue& e : v.toListRef()) out.push_back(num_of(e));
    else out.push_back(num_of(v));
  }
  if (c.op->random) out.push_back({true, 0, (int64_t)(c.seed >> 2)});
}

// ---- what a segment became
struct Port { int kind; uint32_t index; fac_dtype dtype; fac_dims dims; };    // 0 a state, 1 a number
struct Part {
  bool host = false;
  uint32_t call = 0;
  fac_program* program = nullptr;
  std::vector<Port> in, out;
  std::vector<std::pair<uint32_t, bool>> bound;     // slots the program keeps; does it write them?
};
struct Seen { uint64_t uid = 0, writes = 0; int same = 0, still = 0; };
struct Plan {
  int64_t id = 0;
  std::vector<Part> parts;
};
struct Variant {
  std::vector<Num> values;
  std::vector<uint8_t> varying;
  Plan plain, bound;
  std::vector<Seen> seen;                           // by slot
  std::vector<uint64_t> held;                       // the tensors of bound slots
  int binds = 0;
};
struct Entry {
  std::vector<uint8_t> fixed;                       // numbers that a row needs as constants
  std::vector<Variant> variants;
};
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
static void retire(const Variant& v) {
  retired_.push_back(v.plain.id);
  if (v.bound.id) retired_.push_back(v.bound.id);
}
void forget_plans() {
  std::lock_guard<std::recursive_mutex> g(rec().mu);
  for (auto& [key, e] : entries)
    for (auto& v : e.variants) retire(v);
  entries.clear();
}

// ---- the segment as JSON
static void put(std::string& o, double d) {
  if (std::isnan(d)) { o += "NaN"; return; }
  if (std::isinf(d)) { o += d < 0 ? "-Infinity" : "Infinity"; return; }
  char text[40];
  snprintf(text, sizeof text, "%.17g", d);
  o += text;
  if (!strpbrk(text, ".eE")) o += ".0";
}
template <class L>
static void put_list(std::string& o, const L& list) {
  o += '[';
  bool first = true;
  for (int64_t v : list) {
    if (!first) o += ',';
    first = false;
    o += std::to_string(v);
  }
  o += ']';
}
static void put_text(std::string& o, const std::string& s) {
  o += '"';
  for (char ch : s) {
    if (ch == '"' || ch == '\\') o += '\\';
    o += ch;
  }
  o += '"';
}
static void put(std::string& o, const c10::IValue& v) {
  if (v.isInt()) o += std::to_string(v.toInt());
  else if (v.isBool()) o += v.toBool() ? "true" : "false";
  else if (v.isDouble()) put(o, v.toDouble());
  else if (v.isString()) put_text(o, v.toStringRef());
  else if (v.isList()) {
    o += '[';
    bool first = true;
    for (const c10::IValue& e : v.toListRef()) {
      if (!first) o += ',';
      first = false;
      put(o, e);
    }
    o += ']';
  } else if (v.isComplexDouble()) o += "{\"x\":0}";
  else o += "null";
}
static void put(std::string& o, const Ref& r, size_t& number) {
  if (!r.s && !r.host.defined()) { o += "null"; return; }
  if (!r.s) {
    o += "{\"n\":" + std::to_string(number++) + ",\"d\":" + std::to_string((int)r.dtype) + ",\"w\":" +
         (r.host.unsafeGetTensorImpl()->is_wrapped_number() ? "1" : "0") + "}";
    return;
  }
  o += "{\"t\":" + std::to_string(r.s->slot) + ",\"d\":" + std::to_string((int)r.dtype) + ",\"z\":";
  put_list(o, r.sizes);
  o += ",\"s\":";
  put_list(o, r.strides);
  o += ",\"o\":" + std::to_string(r.offset) + "}";
}
static void put_number(std::string& o, const c10::IValue& v, size_t& number) {
  int d = v.isBool() ? 11 : v.isInt() ? 4 : v.isDouble() ? 6 : 9;
  o += "{\"n\":" + std::to_string(number++) + ",\"d\":" + std::to_string(d) + ",\"w\":1}";
}
static void put(std::string& o, const Call& c, size_t& number) {
  auto& I = *c.op;
  o += "{\"op\":\"" + I.name + "\",\"a\":[";
  size_t tensor_number = number, k = 0;
  each_ref(c, [&](size_t, size_t q) { number += !c.in[q].s && c.in[q].host.defined(); });
  for (size_t i = 0; i < c.other.size(); i++) {
    if (i) o += ',';
    auto& v = c.other[i];
    bool list = I.kind[i] == OpInfo::LIST || I.kind[i] == OpInfo::OPTLIST;
    if (c.count[i] >= 0) {
      if (list) o += '[';
      for (int j = 0; j < c.count[i]; j++) {
        if (j) o += ',';
        put(o, c.in[k++], tensor_number);
      }
      if (list) o += ']';
    } else if (v.isNone()) o += "null";
    else if (I.kind[i] == OpInfo::DTYPE && v.isInt()) o += "{\"d\":" + std::to_string(v.toInt()) + "}";
    else if (!is_lifted(I, i, v)) put(o, v);
    else if (v.isList()) {
      o += '[';
      bool first = true;
      for (const c10::IValue& e : v.toListRef()) {
        if (!first) o += ',';
        first = false;
        put_number(o, e, number);
      }
      o += ']';
    } else put_number(o, v, number);
  }
  o += "],\"w\":";
  put_list(o, I.writes);
  o += ",\"y\":[";
  size_t none = 0;
  for (size_t i = 0; i < c.out.size(); i++) {
    if (i) o += ',';
    put(o, c.out[i], none);
  }
  o += "],\"r\":" + (I.random ? std::to_string(number++) : std::string("-1")) + "}";
}

struct Run {                                        // a segment that is being computed
  std::vector<Call> calls;
  std::vector<State*> states;
  std::vector<Num> numbers;
  int device = 0;
  const char* precision = "default";
  ~Run() {
    for (auto& c : calls) drop(c);
    for (State* s : states) state_drop(s);
  }
};
void drop(Call& c) {
  for (auto& r : c.in) if (r.s) state_drop(r.s);
  for (auto& r : c.out) if (r.s) state_drop(r.s);
}

static std::string json(const Run& run, const std::vector<uint8_t>& varying, const std::vector<uint8_t>& fixed,
                        const Plan* bind_to, const std::vector<uint32_t>& bind) {
  std::string o = "{\"device\":" + std::to_string(run.device) + ",\"precision\":\"" + run.precision + "\",\"states\":[";
  for (size_t i = 0; i < run.states.size(); i++)
    o += (i ? ",[" : "[") + std::to_string(run.states[i]->bytes) + (run.states[i]->alive ? ",1]" : ",0]");
  o += "],\"numbers\":[";
  for (size_t i = 0; i < run.numbers.size(); i++) {
    if (i) o += ',';
    if (run.numbers[i].whole) o += std::to_string(run.numbers[i].i);
    else put(o, run.numbers[i].d);
  }
  o += "],\"varying\":";
  put_list(o, varying);
  o += ",\"fixed\":";
  put_list(o, fixed);
  o += ",\"bind\":{";
  for (size_t i = 0; i < bind.size(); i++) {
    State* s = run.states[bind[i]];
    fac_dtype t = FAC_NONE;
    for (auto& p : bind_to->parts)
      for (auto& port : p.in)
        if (port.kind == 0 && port.index == bind[i]) t = port.dtype;
    o += (i ? ",\"" : "\"") + std::to_string(bind[i]) + "\":" + std::to_string((uint64_t)state_tensor(s, t));
  }
  o += "},\"calls\":[";
  size_t number = 0;
  for (size_t i = 0; i < run.calls.size(); i++) {
    if (i) o += ',';
    put(o, run.calls[i], number);
  }
  return o + "]}";
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

// ---- running
struct Held {                                       // tensors of one run
  std::vector<fac_tensor*> all;
  ~Held() { for (auto* t : all) api().free(t); }
  fac_tensor* keep(fac_tensor* t) { all.push_back(t); return t; }
};
static fac_tensor* seen_as(fac_tensor* base, const Port& p, Held& held) {
  int64_t strides[FAC_DIMS], n = 1;
  for (int i = p.dims.n - 1; i >= 0; i--) {
    strides[i] = n;
    n *= p.dims.d[i];
  }
  fac_tensor* t;
  fac_error err;
  fac_status st = api().view(base, p.dims, strides, 0, &t, &err);
  TORCH_CHECK(!st, "ocl: ", err.text);
  return held.keep(t);
}
static fac_tensor* number_tensor(const Num& n, fac_dtype t, Held& held) {
  Block* b = block_new(8);                          // a device may read it later
  fac_dims none = {0, {0}};
  fac_tensor* made;
  fac_error err;
  double d = n.whole ? (double)n.i : n.d;
  if (t == FAC_I64) *(int64_t*)b->p = n.i;
  else if (t == FAC_F32) *(float*)b->p = (float)d;
  else *(double*)b->p = d;
  fac_status st = api().lend(t, none, nullptr, b->p, [](void* o) { block_drop((Block*)o); }, b, &made,
                             &err);
  if (st) block_drop(b);
  TORCH_CHECK(!st, "ocl: ", err.text);
  return held.keep(made);
}

static void run_program(Run& run, const Part& p) {
  Held held;
  std::vector<fac_tensor*> in, out;
  std::vector<std::pair<Block*, fac_tensor*>> fresh;
  struct Undo {
    std::vector<std::pair<Block*, fac_tensor*>>& f;
    ~Undo() { for (auto& [b, t] : f) { if (t) api().free(t); block_drop(b); } }
  } undo{fresh};
  for (size_t k = 0; k < p.in.size(); k++) {
    auto& port = p.in[k];
    if (port.kind) in.push_back(number_tensor(run.numbers[port.index], port.dtype, held));
    else in.push_back(seen_as(state_tensor(run.states[port.index], port.dtype), port, held));
  }
  for (auto& port : p.out) {
    Block* b = block_new(run.states[port.index]->bytes);
    fresh.push_back({b, nullptr});
    fresh.back().second = lent(b, port.dtype);
    out.push_back(seen_as(fresh.back().second, port, held));
  }
  fac_error err;
  fac_status st = api().run(p.program, in.data(), out.data(), &err);
  TORCH_CHECK(!st, "ocl: ", err.text);
  for (size_t k = 0; k < p.out.size(); k++) {
    State* s = run.states[p.out[k].index];
    state_set(s, fresh[k].second, p.out[k].dtype);
    if (s->block) block_drop(s->block);
    s->block = fresh[k].first;
    s->writes++;
  }
  fresh.clear();
  for (auto& [slot, writes] : p.bound)
    if (writes) run.states[slot]->writes++;
}
static void run_plan(Run& run, const Plan& plan) {
  for (auto& p : plan.parts) {
    if (!p.host) { run_program(run, p); continue; }
    auto& c = run.calls[p.call];
    Stack st;
    try { replay(c, st); }
    catch (c10::Error& e) { TORCH_CHECK(false, e.what_without_backtrace(), " (recorded ", c.op->name, ")"); }
    catch (std::exception& e) { TORCH_CHECK(false, "ocl: recorded ", c.op->name, ": ", e.what()); }
    store(c, st);
    count_fallback(c.op->name, nullptr);
  }
}

// A leaf that came unchanged through two runs, or that each run writes, is kept by a program of its own: the
// device has it then, and what is computed of such leaves alone is computed once.  Single numbers stay inputs.
static constexpr size_t kLeastKept = 16;
static bool has_port(const Plan& plan, uint32_t slot, bool out) {
  for (auto& p : plan.parts)
    for (auto& port : out ? p.out : p.in)
      if (!port.kind && port.index == slot) return true;
  return false;
}
static std::vector<uint32_t> stable(const Run& run, Variant& v) {
  std::vector<uint32_t> bind;
  v.seen.resize(run.states.size());
  if (v.plain.parts.size() != 1 || v.binds >= 4) return bind;
  bool settled = true;
  for (uint32_t k = 0; k < run.states.size(); k++) {
    State* s = run.states[k];
    Seen& was = v.seen[k];
    was.same = was.uid == s->uid ? was.same + 1 : 0;
    was.still = was.same && was.writes == s->writes ? was.still + 1 : 0;
    was.uid = s->uid;
    if (!s->alive || s->bytes < kLeastKept || !has_port(v.plain, k, false)) continue;
    bool writes = has_port(v.plain, k, true);
    if (writes ? was.same >= 2 : was.still >= 2) bind.push_back(k);
    else if (was.same == 1) settled = false;
  }
  if (!settled) bind.clear();
  return bind;
}
static bool still_held(const Run& run, const Variant& v) {
  if (v.bound.parts.empty()) return false;
  size_t k = 0;
  for (auto& p : v.bound.parts)
    for (auto& [slot, writes] : p.bound) {
      if (k >= v.held.size() || v.held[k] != run.states[slot]->tensor_uid) return false;
      k++;
    }
  return true;
}
static void hold(const Run& run, Variant& v) {
  v.held.clear();
  for (auto& p : v.bound.parts)
    for (auto& [slot, writes] : p.bound) v.held.push_back(run.states[slot]->tensor_uid);
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

// A segment that failed leaves what was there; what it should have made is lost.
static void lose(const Run& run) {
  auto mark = [](State* s) { if (s && !s->block) s->lost = true; };
  for (auto& c : run.calls) {
    for (auto& o : c.out) mark(o.s);
    each_ref(c, [&](size_t i, size_t k) { if (c.op->writes[i]) mark(c.in[k].s); });
  }
}

static void compute(Run& run, uint64_t key) {
  auto& R = rec();
  R.kept = 0;
  uint64_t before = R.builds;
  Variant& v = variant_of(run, entries[key]);
  if (R.builds == before) R.replays++;
  if (still_held(run, v)) {
    R.kept = v.held.size();
    run_plan(run, v.bound);
    return;
  }
  auto bind = stable(run, v);
  if (!bind.empty()) {
    v.binds++;
    if (v.bound.id) retired_.push_back(v.bound.id);
    v.bound = {};                                   // building may fail, and frees what was retired
    v.bound = build(run, v.varying, entries[key].fixed, &v.plain, bind);
    hold(run, v);
    R.kept = v.held.size();
    run_plan(run, v.bound);
    return;
  }
  run_plan(run, v.plain);
  for (uint32_t k = 0; k < run.states.size(); k++) v.seen[k].writes = run.states[k]->writes;
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
  catch (...) {
    lose(run);
    throw;
  }
}
}  // namespace ocl
