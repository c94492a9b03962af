// Recording: one boxed kernel for all operators.  What its results are is asked once for each
// (operator, types, attributes).
#include "lazy.h"
#include <ATen/native/Resize.h>
#include <algorithm>
#include <cstring>

namespace ocl {
Recorder& rec() {
  static auto* r = new Recorder;
  return *r;
}

static std::unordered_map<uint64_t, Metas> shapes;

uint64_t hash_attr(const c10::IValue& v, bool lifted) {
  if (v.isNone()) return 1;
  if (v.isInt()) return lifted ? 2 : mix(2, v.toInt());
  if (v.isBool()) return mix(3, v.toBool());
  if (v.isDouble()) {
    uint64_t u;
    double d = v.toDouble();
    memcpy(&u, &d, 8);
    return lifted ? 4 : mix(4, u);
  }
  if (v.isIntList()) {
    uint64_t h = 5;
    for (const c10::IValue& e : v.toListRef()) h = mix(h, e.toInt());
    return h;
  }
  if (v.isDevice()) return mix(6, v.toDevice().index());
  if (v.isBoolList()) {
    uint64_t h = 7;
    for (bool b : v.toBoolList()) h = mix(h, b);
    return h;
  }
  if (v.isString()) return std::hash<std::string>()(v.toStringRef());
  if (v.isList()) {
    uint64_t h = 8;
    for (const c10::IValue& e : v.toListRef()) h = mix(h, hash_attr(e, lifted));
    return h;
  }
  return 9;
}
static uint64_t hash_type(c10::ScalarType dtype, const Dims& sizes, const Dims& strides, bool here) {
  uint64_t h = mix(1, (uint64_t)dtype | sizes.size() << 8 | (here ? 1 << 16 : 0));
  for (size_t i = 0; i < sizes.size(); i++) h = mix(mix(h, sizes[i]), strides[i]);
  return h;
}
// Asked for several times while a call is recorded, computed once: who changes sizes or strides sets it to 0.
static uint64_t type_of(Ref& r) {
  if (!r.type) r.type = hash_type(r.dtype, r.sizes, r.strides, r.s);
  return r.type;
}

Ref ref_of(const at::Tensor& t) {
  Ref r;
  auto* im = t.unsafeGetTensorImpl();
  r.dtype = t.scalar_type();
  r.sizes.assign(im->sizes().begin(), im->sizes().end());
  r.strides.assign(im->strides().begin(), im->strides().end());
  if (im->is_privateuseone()) {
    r.s = state_of(t);
    r.offset = im->storage_offset();
  } else r.host = t;
  return r;
}
// A tensor of the host with dims is copied when it is recorded: a state that nobody else has.
static void snapshot(Ref& r, int device) {
  at::Tensor plain = r.host.contiguous();
  State* s = state_new(plain.nbytes(), device);
  memcpy(state_memory(s), plain.const_data_ptr(), plain.nbytes());
  s->alive = false;
  r.s = s;
  plain_strides(r.sizes, r.strides);
  r.type = 0;
  r.host = at::Tensor();
}
static uint32_t number_value(Recorder& R, State* s) {
  if (s->segment != R.segment) {
    s->segment = R.segment;
    s->value = R.next_value++;
    s->slot = (uint32_t)R.states.size();
    R.states.push_back(s);
    R.hash = mix(R.hash, s->bytes);
  }
  return s->value;
}
static void is_written(Recorder& R, State* s) {
  s->written = R.segment;
  s->known = false;
}
static void append(Recorder& R, Call&& c) {
  auto& I = *c.op;
  uint64_t h = I.id;
  for (int32_t n : c.count) h = mix(h, (uint64_t)(n + 2));      // which arguments are absent
  each_ref(c, [&](size_t, size_t k) {
    auto& r = c.in[k];
    if (!r.s) {
      h = mix(h, r.host.defined() ? 11 + r.host.unsafeGetTensorImpl()->is_wrapped_number() : 10);
      if (r.host.defined()) h = mix(h, type_of(r));
      return;
    }
    r.s->refs++;
    h = mix(mix(mix(h, number_value(R, r.s)), r.offset), type_of(r));
  });
  for (size_t i = 0; i < c.other.size(); i++)
    if (I.kind[i] == OpInfo::OTHER || I.kind[i] == OpInfo::SCALAR || I.kind[i] == OpInfo::DTYPE)
      h = mix(h, hash_attr(c.other[i], is_lifted(I, i, c.other[i])));
  if (I.has_writes)
    each_ref(c, [&](size_t i, size_t k) {
      auto& r = c.in[k];
      if (!I.writes[i] || !r.s) return;
      r.s->value = R.next_value++;
      is_written(R, r.s);
    });
  for (auto& o : c.out)
    if (o.s) {
      o.s->refs++;
      number_value(R, o.s);
      is_written(R, o.s);
      h = mix(h, type_of(o));
    }
  R.hash = mix(R.hash, h);
  // A segment ends at a place that the last calls alone tell, so that a loop is cut in the same places each time: where
  // nobody reads for long, or after few calls, so that the device computes while further ones are recorded.
  R.last[R.recorded++ & 7] = mix(I.id, c.in.empty() ? 0 : type_of(c.in[0]));
  uint64_t w = 0;
  for (uint64_t i = 0; i < 8; i++) w = mix(w, R.last[(R.recorded + i) & 7]);
  R.calls.push_back(std::move(c));
  const size_t n = R.calls.size();
  if (R.each) flush(true);
  else if (n >= R.most || (n >= R.most / 4 && w % 256 == 0) || (R.ahead && n >= R.ahead && w % 4 == 0)) flush(false);
}

static void turn_to(Recorder& R, int device) {
  if (R.device == device) return;
  flush(false);
  R.device = device;
}
void append_copy(const Ref& to, const Ref& from) {
  static OpInfo I(c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", ""));
  auto& R = rec();
  Call c;
  c.op = &I;
  c.device = to.s->device;
  c.other = {c10::IValue(), c10::IValue(), c10::IValue(false)};
  c.count = {1, 1, -1};
  c.in = {to, from};
  turn_to(R, c.device);
  append(R, std::move(c));
}

// ---- integers
// Few of them, of which the host has the contents, are computed at once by torch: ids, positions and
// masks, whose sizes grow while a language model writes.  A segment would be another one in each step.
static constexpr size_t kFew = 8192;
static bool is_whole(c10::ScalarType t) { return c10::isIntegralType(t, true); }
static bool is_whole(const c10::IValue& v) {
  if (v.isList()) {
    for (const c10::IValue& e : v.toListRef())
      if (!is_whole(e)) return false;
    return true;
  }
  return v.isNone() || v.isInt() || v.isBool();
}
static bool is_known(const Recorder& R, const Call& c) {
  auto& I = *c.op;
  bool fits = !R.each && !I.random, any = false;
  each_ref(c, [&](size_t i, size_t k) {
    auto& r = c.in[k];
    if (!r.s) { fits &= !r.host.defined() || (is_whole(r.dtype) && r.host.nbytes() <= kFew); return; }
    any = true;
    fits &= is_whole(r.dtype) && r.s->bytes <= kFew && is_known(r.s) && !(I.writes[i] && r.s->segment == R.segment);
  });
  for (size_t i = 0; fits && i < c.other.size(); i++) {
    // what is written in place keeps its type, whatever the number's: torch.ones fills with 1.0
    if (I.kind[i] == OpInfo::SCALAR) fits = is_whole(c.other[i]) || (I.writes[0] && c.other[i].isDouble());
    if (I.kind[i] == OpInfo::DTYPE && c.other[i].isInt()) fits = is_whole((c10::ScalarType)c.other[i].toInt());
  }
  return fits && any;
}
// `keep`: the arguments that are results.
static bool now(Call& c, Stack* stack, const c10::SmallVectorImpl<at::Tensor>& keep) {
  auto& I = *c.op;
  for (auto& r : c.in)                              // most calls: no need for the lock
    if (r.s && !is_whole(r.dtype)) return false;
  Stack st;
  {
    std::lock_guard<std::recursive_mutex> g(rec().mu);
    if (!is_known(rec(), c)) return false;
    replay(c, st);
  }
  stack->erase(stack->end() - I.kind.size(), stack->end());
  size_t a = 0;
  for (size_t i = 0; i < I.alias.size(); i++) {
    if (I.alias[i] >= 0) stack->emplace_back(keep[a++]);
    else if (st[i].isTensorList()) {
      c10::List<at::Tensor> l;
      for (const at::Tensor& t : st[i].toTensorVector()) l.push_back(up(t, c.device));
      stack->emplace_back(std::move(l));
    } else if (st[i].isTensor()) stack->emplace_back(up(st[i].toTensor(), c.device));
    else stack->push_back(st[i].isNone() ? c10::IValue(at::Tensor()) : st[i]);
  }
  return true;
}

static int device_of(const Call& c, const Stack* stack, size_t base, size_t n) {
  for (auto& r : c.in)
    if (r.s) return r.s->device;
  for (size_t i = 0; i < n; i++) {
    auto& v = (*stack)[base + i];
    if (v.isDevice() && v.toDevice().has_index()) return v.toDevice().index();
  }
  return current_device();
}

// torch gives products and others lazy conjugates and signs as they are: its own kernels look at the bits.
static void make_plain(const OpInfo& I, c10::IValue* a) {
  auto is_lazy = [](const at::Tensor& t) { return t.defined() && (t.is_conj() || t.is_neg()); };
  auto plain = [](const at::Tensor& t) { return t.resolve_conj().resolve_neg(); };
  for (size_t i = 0; i < I.kind.size(); i++) {
    if (I.kind[i] == OpInfo::TENSOR && a[i].isTensor() && is_lazy(a[i].toTensor())) {
      TORCH_CHECK_NOT_IMPLEMENTED(!I.writes[i], "ocl: ", I.name, " into a tensor that is a lazy conjugate");
      a[i] = plain(a[i].toTensor());
    } else if (I.kind[i] == OpInfo::LIST && a[i].isTensorList() && !I.writes[i]) {
      auto list = a[i].toListRef();
      if (std::none_of(list.begin(), list.end(), [&](auto& e) { return is_lazy(e.toTensor()); })) continue;
      auto all = a[i].toTensorVector();
      for (auto& t : all) t = plain(t);
      a[i] = c10::List<at::Tensor>(c10::ArrayRef<at::Tensor>(all));
    }
  }
}

void record(const OpInfo& I, Stack* stack) {
  auto& R = rec();
  size_t n = I.kind.size(), base = stack->size() - n;
  make_plain(I, stack->data() + base);
  if (I.masks) plain_indices(I, stack->data() + base);
  check(I, stack->data() + base);
  if (grow(I, stack)) return;
  Call c;
  c10::SmallVector<std::shared_ptr<Grown>, 2> read;   // held until the call is recorded
  c.op = &I;
  c.other.resize(n);
  c.count.resize(n, -1);
  size_t listed = 0;
  for (size_t i = 0; i < n; i++)
    if (I.kind[i] == OpInfo::LIST && !(*stack)[base + i].isNone()) listed += (*stack)[base + i].toListRef().size();
  if (listed) c.in.reserve(listed + n);
  uint64_t key = I.id;
  c10::ScalarType type = c10::ScalarType::Undefined;    // of the tensors of the device
  bool mixed = false;
  auto put = [&](const at::Tensor& t, bool writes) {
    c.in.push_back(ref_of(t));
    auto& r = c.in.back();
    if (r.s) {
      mixed |= type != c10::ScalarType::Undefined && type != r.dtype;
      type = r.dtype;
    }
    if (r.s && r.s->grown) {
      read.push_back(r.s->grown);
      if (writes || !in_part(r)) settle(r.s);
    }
    key = mix(key, type_of(r));
    if (!r.s && r.sizes.empty() && r.host.unsafeGetTensorImpl()->is_wrapped_number()) key = mix(key, 77);
  };
  for (size_t i = 0; i < n; i++) {
    auto& v = (*stack)[base + i];
    switch (I.kind[i]) {
      case OpInfo::TENSOR:
        if (v.isTensor() && v.toTensor().defined()) {
          put(v.toTensor(), I.writes[i]);
          c.count[i] = 1;
        } else {
          c.other[i] = v;
          key = mix(key, 13);
        }
        break;
      case OpInfo::LIST:
        if (v.isNone()) break;
        for (const c10::IValue& e : v.toListRef()) put(e.toTensor(), I.writes[i]);
        c.count[i] = (int)v.toListRef().size();
        key = mix(key, c.count[i]);
        break;
      case OpInfo::OPTLIST:
        if (v.isNone()) break;
        for (auto& e : v.toListRef()) {
          if (e.isTensor() && e.toTensor().defined()) put(e.toTensor(), I.writes[i]);
          else { c.in.push_back(Ref()); key = mix(key, 14); }
        }
        c.count[i] = (int)v.toListRef().size();
        break;
      case OpInfo::GENERATOR: break;
      default:
        c.other[i] = v;
        key = mix(key, hash_attr(v, I.kind[i] == OpInfo::SCALAR && I.pointwise));
    }
  }
  c.device = device_of(c, stack, base, n);
  for (auto& r : c.in)
    TORCH_CHECK(!r.s || r.s->device == c.device, "Expected all tensors to be on the same device, but "
                "found at least two devices, ocl:", c.device, " and ocl:", r.s ? r.s->device : 0,
                " (", I.name, ")");
  check_places(c);
  if (mixed) check_types(c);
  c10::SmallVector<at::Tensor, 4> keep;             // arguments that are results
  for (auto a : I.alias)
    if (a >= 0) {
      auto& v = (*stack)[base + a];
      keep.push_back(v.isTensor() ? v.toTensor() : at::Tensor());
    }
  auto run_now = [&](const char* why) {
    std::lock_guard<std::recursive_mutex> g(R.mu);
    flush(true);
    count_fallback(I.name, why);
    const Stack held(stack->end() - n, stack->end());       // nothing else may hold its arguments
    stack->erase(stack->end() - n, stack->end());
    if (I.dynamic && I.has_out) run_into(c, held, stack);
    else run_on_host(c, stack);
  };
  if (!I.has_out && now(c, stack, keep)) return;
  if (I.dynamic) return run_now("its result depends on data, or is no tensor");
  if (I.random) {
    std::optional<at::Generator> g;
    for (size_t i = 0; i < n; i++)
      if (I.kind[i] == OpInfo::GENERATOR && (*stack)[base + i].isGenerator())
        g = (*stack)[base + i].toGenerator();
    auto sc = generator_next(g, c.device);
    c.seed = mix(sc.first, sc.second);
  }
  const Metas* m = nullptr;                         // none of `shapes` is ever changed or taken out
  if (I.fresh || I.has_out) {
    {
      std::lock_guard<std::recursive_mutex> g(R.mu);
      auto it = shapes.find(key);
      if (it != shapes.end()) { m = &it->second; R.hits++; }
    }
    Metas local;
    if (!m) {                                       // unlocked: a meta kernel of Python takes the GIL
      try { local = infer(c); }
      catch (c10::NotImplementedError&) { return run_now("torch does not know its shape beforehand"); }
      catch (c10::Error&) { throw; }
      catch (...) {                                 // an error of Python's: data may tell the shape
        refuse_as_cpu(c);
        return run_now("torch does not know its shape beforehand");
      }
      for (auto& x : local) x.type = hash_type(x.dtype, x.sizes, x.strides, true);
      std::lock_guard<std::recursive_mutex> g(R.mu);
      R.infers++;
      m = &shapes.emplace(key, std::move(local)).first->second;
    }
  }
  if (I.has_out && m) {
    size_t o = 0;
    each_ref(c, [&](size_t i, size_t k) {
      if (!I.writes[i] || o >= m->size()) return;
      auto& want = (*m)[o++];
      if (c10::IntArrayRef(want.sizes) == c10::IntArrayRef(c.in[k].sizes)) return;
      const at::Tensor& t = (*stack)[base + i].toTensor();
      at::native::resize_output_check(t, c10::IntArrayRef(want.sizes));   // torch's warning
      ocl::resize(t, want.sizes, std::optional<c10::MemoryFormat>());
      c.in[k] = ref_of(t);
    });
  }
  if (I.has_out && now(c, stack, keep)) return;
  c10::SmallVector<State*, 2> taken;
  for (auto& r : c.in)
    if (!r.s && r.host.defined() && r.host.dim()) { snapshot(r, c.device); taken.push_back(r.s); }
  Stack held;                                       // what plain_indices() made lives until it is recorded
  if (I.masks) held.assign(stack->end() - n, stack->end());
  stack->erase(stack->end() - n, stack->end());
  c10::SmallVector<at::Tensor, 2> made;
  int8_t chained = 1;
  if (I.fresh)
    for (auto& x : *m) {
      Ref r;
      r.dtype = x.dtype;
      if (x.defined) {
        at::Tensor t = make(x.dtype, x.sizes, x.strides, c.device);
        r.sizes = x.sizes;
        r.strides = x.strides;
        r.s = state_of(t);
        r.type = x.type;
        made.push_back(std::move(t));
      } else made.emplace_back();
      c.out.push_back(std::move(r));
    }
  {
    std::lock_guard<std::recursive_mutex> g(R.mu);
    turn_to(R, c.device);
    if (I.product) {
      const int now = precision_now();
      if (R.precision != PRECISION_OPEN && R.precision != now) flush(false);
      R.precision = now;
    }
    if (!c.in.empty() && c.in[0].s && c.in[0].s->chained < 0) chained = -1;
    append(R, std::move(c));
  }
  if (made.size() == 1 && I.name == "aten::cat") state_of(made[0])->chained = chained;
  for (State* s : taken) state_drop(s);
  size_t k = 0, a = 0;
  for (size_t i = 0; i < I.alias.size(); i++) {
    if (I.alias[i] >= 0) stack->emplace_back(std::move(keep[a++]));
    else if (I.retlist[i]) {
      c10::List<at::Tensor> l;
      while (k < made.size()) l.push_back(std::move(made[k++]));
      stack->emplace_back(std::move(l));
    } else stack->emplace_back(std::move(made[k++]));
  }
}
}  // namespace ocl
