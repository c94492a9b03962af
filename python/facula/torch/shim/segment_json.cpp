// The numbers of a segment, and the segment as JSON, which counts them in the same order: for
// segment.py.
#include "segment.h"
#include <cmath>
#include <cstring>

namespace ocl {
static Num num_of(const c10::IValue& v) {
  if (v.isInt()) return {true, (double)v.toInt(), v.toInt()};
  if (v.isBool()) return {true, (double)v.toBool(), v.toBool()};
  if (v.isDouble()) return {false, v.toDouble(), 0};
  return {};
}
static Num num_of(const at::Tensor& t) {
  if (t.is_complex()) return {};
  if (t.scalar_type() == at::kDouble) return {false, *t.const_data_ptr<double>(), 0};   // Python's numbers
  if (t.scalar_type() == at::kLong) return {true, (double)*t.const_data_ptr<int64_t>(), *t.const_data_ptr<int64_t>()};
  Below b;
  if (t.is_floating_point()) return {false, t.to(at::kDouble).item<double>(), 0};
  int64_t i = t.to(at::kLong).item<int64_t>();
  return {true, (double)i, i};
}
void numbers_of(const Call& c, std::vector<Num>& out) {
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

// ---- text
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
template <class Put> static void put_items(std::string& o, const c10::IValue& list, Put one) {
  o += '[';
  bool first = true;
  for (const c10::IValue& e : list.toListRef()) {
    if (!first) o += ',';
    first = false;
    one(e);
  }
  o += ']';
}
static void put(std::string& o, const c10::IValue& v) {
  if (v.isInt()) o += std::to_string(v.toInt());
  else if (v.isBool()) o += v.toBool() ? "true" : "false";
  else if (v.isDouble()) put(o, v.toDouble());
  else if (v.isString()) put_text(o, v.toStringRef());
  else if (v.isList()) put_items(o, v, [&](const c10::IValue& e) { put(o, e); });
  else if (v.isComplexDouble()) o += "{\"x\":0}";
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
    else if (v.isList()) put_items(o, v, [&](const c10::IValue& e) { put_number(o, e, number); });
    else put_number(o, v, number);
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

std::string json(const Run& run, const std::vector<uint8_t>& varying,
                 const std::vector<uint8_t>& fixed, const Plan* bind_to,
                 const std::vector<uint32_t>& bind) {
  std::string o = "{\"device\":" + std::to_string(run.device) + ",\"precision\":\"" +
                  run.precision + "\",\"states\":[";
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
}  // namespace ocl
