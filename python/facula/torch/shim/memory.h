// Memory of states: see memory.cpp.
#pragma once
#include "lazy.h"

namespace ocl {
struct MemoryStat { uint64_t now, peak, kept, states; };
MemoryStat memory_stat();
void memory_trim();                 // gives back what is kept for later
void memory_reset_peak();
c10::DataPtr data_of(State*);       // device.cpp
State* state_in(const c10::StorageImpl&);
void set_devices(const std::vector<int64_t>& addresses);
void set_current_device(int n);
}  // namespace ocl
