// Between flushes and Python: see flush.cpp.
#pragma once
#include "lazy.h"

namespace ocl {
using Builder = int (*)(const char* segment);
void set_builder(Builder);
void set_answer(std::vector<int64_t> code);
void set_failure(std::string why);
void set_api(const void* functions);
size_t entry_count();
void forget_plans();                    // programs of all segments: they are planned anew
std::vector<int64_t> retired();
}  // namespace ocl
