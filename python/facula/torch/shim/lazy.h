// Shared by the files of the shim: states (storages whose contents are computed late), recorded
// calls, the table of operators, and the library's functions, which come as pointers.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/stack.h>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include "facula/device.h"
#include "facula/program.h"

namespace ocl {

using Dims = c10::SmallVector<int64_t, 5>;
using Stack = torch::jit::Stack;

// The order is that of python/src/lend.c.
struct Api {
  fac_status (*lend)(fac_dtype, fac_dims, const int64_t*, void*, void (*)(void*), void*,
                     fac_tensor**, fac_error*);
  fac_status (*view)(fac_tensor*, fac_dims, const int64_t*, int64_t, fac_tensor**, fac_error*);
  void (*free)(fac_tensor*);
  const void* (*data)(const fac_tensor*);
  void (*touch)(fac_tensor*);
  fac_status (*run)(fac_program*, fac_tensor* const*, fac_tensor**, fac_error*);
  void (*discard)(fac_tensor*);
  fac_status (*check)(fac_device*, fac_error*);
  uint64_t (*version)(const fac_tensor*);
};
const Api& api();

// Memory of the host that a state and tensors of the library share: freed with the last of them.
struct Block {
  void* p;
  size_t bytes;
  std::atomic<int> refs{1};
};
Block* block_new(size_t bytes);
void block_drop(Block*);

struct Grown;

// What a storage is: an address nobody can use, memory from its first write on, and in the open
// segment the number of its newest value.
struct State {
  size_t bytes = 0;
  int device = 0;
  void* ticket = nullptr;         // data_ptr(): unique, never dereferenced
  Block* block = nullptr;
  fac_tensor* tensor = nullptr;   // over the block, flat, of type `dtype`
  uint64_t tensor_uid = 0;        // of `tensor`, whose address a later one may have
  fac_dtype dtype = FAC_NONE;
  uint64_t uid = 0;               // never used again
  uint64_t segment = 0;           // in which `value` and `slot` have a meaning
  uint32_t value = 0, slot = 0;
  uint64_t writes = 0;
  uint64_t written = 0;           // the segment in which a recorded call wrote it last
  bool known = true;              // the host has its contents, unless the open segment writes them
  std::shared_ptr<Grown> grown;   // it is an unread cat: see grown.cpp
  int8_t chained = 0;             // 1: it is a cat and may grow; -1: it grew, and was read
  bool lost = false;              // what should have made its contents failed
  std::atomic<bool> unasked{false};   // whether that failed is not known yet: see later.cpp
  std::atomic<int> refs{1};       // of the storage, and one of each recorded use
  std::atomic<bool> alive{true};  // the storage exists: contents survive a flush
};
State* state_new(size_t bytes, int device);
uint64_t next_uid();                            // above those of all states that there are
void state_drop(State*);
void* state_memory(State*);                     // newest contents, on the host
void state_wrote(State*);                       // the host wrote to them
fac_tensor* state_tensor(State*, fac_dtype);    // borrowed
fac_tensor* lent(Block*, fac_dtype);            // a flat tensor over a block
void state_set(State*, fac_tensor*, fac_dtype); // the state owns it and frees the one before
void state_lose(State*);                        // it has no contents any more

// A tensor argument as recorded: no at::Tensor is kept, so that liveness stays visible.
struct Ref {
  State* s = nullptr;             // null: `host` is a number, or absent
  at::Tensor host;
  c10::ScalarType dtype = c10::ScalarType::Float;
  Dims sizes, strides;
  int64_t offset = 0;
  uint64_t type = 0;              // hash of dtype, sizes and strides, once it was asked for
};

struct OpInfo {
  c10::OperatorHandle op;
  std::string name;
  uint64_t id;
  enum Kind : uint8_t { OTHER, TENSOR, LIST, OPTLIST, SCALAR, GENERATOR, DTYPE };
  c10::SmallVector<uint8_t, 12> kind, writes;
  c10::SmallVector<int8_t, 4> alias;    // of each result: the argument it is, or -1
  c10::SmallVector<uint8_t, 4> retlist; // the result is a list
  bool fresh = false, pointwise = false, dynamic = false, random = false, has_out = false;
  bool has_writes = false;
  bool lift = false;                    // its floating-point arguments are numbers, not structure
  bool masks = false;                   // masks may be among its indices: see masks.cpp
  bool product = false;                 // torch's switch of precision speaks of it
  bool apart = false, repeats = false;  // see checks.cpp
  explicit OpInfo(const c10::OperatorHandle& o);
};

struct Call {
  const OpInfo* op;
  c10::SmallVector<c10::IValue, 10> other;   // arguments that are no tensors, None where one was
  c10::SmallVector<Ref, 4> in;          // tensor arguments in order, lists flattened
  c10::SmallVector<int32_t, 12> count;  // of each argument: how many refs, -1 none
  c10::SmallVector<Ref, 2> out;         // fresh results
  uint64_t seed = 0;
  int device = 0;
};

// Of the products of a segment: open until the first of them is recorded.  See precision.cpp.
enum Precision {
  PRECISION_OPEN = -1,
  PRECISION_DEFAULT,
  PRECISION_HIGHEST,
  PRECISION_HIGH,
  PRECISION_MEDIUM
};
const char* precision_name(int);                    // as the library calls it
Precision precision_now();                          // as torch's switch says, or set_precision()
void set_precision(int64_t);                        // PRECISION_OPEN: torch's switch
bool is_product(const std::string& name);           // of an overload

struct Recorder {
  std::recursive_mutex mu;
  std::vector<Call> calls;
  std::vector<State*> states;           // of the open segment, in the order of their first use
  uint64_t segment = 1, hash = 0;
  uint64_t last[8] = {0};               // of the last calls
  uint32_t next_value = 0;
  int device = 0, precision = PRECISION_OPEN;
  bool each = false;                    // a flush after each call
  size_t most = 4096;
  size_t ahead = 0;                     // a segment may end after so many calls; 0: at a read only
  uint64_t flushes = 0, recorded = 0, infers = 0, hits = 0, builds = 0, replays = 0;
  uint64_t kept = 0;                    // leaves that the program of the last segment keeps
  double build_seconds = 0;
  std::unordered_map<std::string, uint64_t> fallbacks, native;
};
Recorder& rec();
void flush(bool read);                              // the open segment ends; will it be read?
void check_earlier();                               // what ended before a read: see later.cpp
void not_asked(State*);                             // such a segment wrote it
void forget_unasked(State*);
void record(const OpInfo&, Stack*);
void check(const OpInfo&, const c10::IValue* arguments);
void check_places(const Call&);                     // one device
void check_types(const Call&);                      // types that go together
bool takes_masks(const std::string& name);          // of an operator
bool reads_apart(const std::string& name);          // nothing of what it writes may be read
bool may_repeat(const std::string& name);           // places may be written more than once
void plain_indices(const OpInfo&, c10::IValue* arguments);   // masks become places
at::Tensor host_of(const Ref&);
State* state_of(const at::Tensor&);
at::Tensor make(c10::ScalarType, c10::IntArrayRef sizes, c10::IntArrayRef strides, int device);
at::Tensor make_with_state(State*, const Ref&);
c10::Allocator* allocator();
int device_count();
fac_device* device_at(int);
int current_device();
void count_fallback(const std::string& op, const char* why);
std::pair<uint64_t, uint64_t> generator_next(const std::optional<at::Generator>&, int device);
const at::Generator& default_generator(c10::DeviceIndex);

// The open segment does not write it, and the host has it.
inline bool is_known(const State* s) {
  return s->known && !s->grown && !s->lost && s->written != rec().segment;
}
at::Tensor up(const at::Tensor& host, int device);  // the same on the device

// ---- what grows by cat: see grown.cpp
struct Grown {
  at::Tensor room;                              // [outer, at least len, inner]; the rest is zero
  at::Tensor part;                                  // [outer, added, inner]: what came last
  int64_t outer, len, added, inner;
};
bool grow(const OpInfo&, Stack*);                   // a cat, recorded in room; or false
void settle(State*);                                // what was not read yet is recorded
bool in_part(Ref&);                             // a view of what came last becomes one of `part`
void append_copy(const Ref& to, const Ref& from);

inline uint64_t mix(uint64_t h, uint64_t x) {
  h ^= x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull;
}
uint64_t hash_attr(const c10::IValue& v, bool lifted);
Ref ref_of(const at::Tensor&);
void plain_strides(const Dims& sizes, Dims& strides);
struct Meta { c10::ScalarType dtype; Dims sizes, strides; bool defined; uint64_t type = 0; };
using Metas = c10::SmallVector<Meta, 2>;
Metas infer(const Call&);                           // the results of a call, or torch's error
void refuse_as_cpu(const Call&);                    // the CPU's error for a call, if it has one
c10::OperatorHandle real_op(const Call&, Stack&);   // what the CPU and meta kernels know
bool is_lifted(const OpInfo&, size_t argument, const c10::IValue&);
void replay(Call&, Stack&);                         // by torch's CPU kernels
void run_on_host(Call&, Stack* out);
void run_into(Call&, const Stack& arguments, Stack* out);   // data tells the sizes of out=
void store(Call&, Stack&);                          // what replay gave, to the call's results
void drop(Call&);
const at::Tensor& resize(const at::Tensor&, c10::IntArrayRef, std::optional<c10::MemoryFormat>);

// no autograd, no Python modes, no autocast while a kernel of the CPU or of meta runs
struct Below {
  at::AutoDispatchBelowADInplaceOrView a;
  c10::impl::ExcludeDispatchKeyGuard p{c10::DispatchKeySet(
      {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot,
       c10::DispatchKey::AutocastPrivateUse1, c10::DispatchKey::Functionalize})};
};

// The arguments as a stack for torch, tensors made by f(ref).
template <class F>
void rebuild(const Call& c, Stack& st, F f) {
  size_t k = 0;
  for (size_t i = 0; i < c.other.size(); i++) {
    int n = c.count[i];
    switch (c.op->kind[i]) {
      case OpInfo::TENSOR:
        st.push_back(n < 0 ? c.other[i] : c10::IValue(f(c.in[k++])));
        break;
      case OpInfo::LIST: {
        if (n < 0) { st.emplace_back(); break; }
        c10::List<at::Tensor> l;
        for (int j = 0; j < n; j++) l.push_back(f(c.in[k++]));
        st.emplace_back(std::move(l));
        break;
      }
      case OpInfo::OPTLIST: {
        if (n < 0) { st.emplace_back(); break; }
        c10::List<std::optional<at::Tensor>> l;
        for (int j = 0; j < n; j++) {
          auto& r = c.in[k++];
          if (r.s || r.host.defined()) l.push_back(f(r));
          else l.push_back(std::nullopt);
        }
        st.emplace_back(std::move(l));
        break;
      }
      default: st.push_back(c.other[i]);
    }
  }
}
template <class F>
void each_ref(const Call& c, F f) {                 // f(argument, index into in)
  size_t k = 0;
  for (size_t i = 0; i < c.other.size(); i++)
    for (int j = 0; j < std::max(c.count[i], 0); j++) f(i, k++);
}
}  // namespace ocl
