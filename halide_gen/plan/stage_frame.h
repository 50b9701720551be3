// The frame of a stage's function on the stack, and what its registers are for. Part of stage_code.cc.
#pragma once
#include <xbyak/xbyak.h>

#include <cstddef>
#include <iterator>

namespace dalsegno::halide_gen::frame {

// Of a frame on the stack: offsets from rsp, which is at a multiple of 64.
inline constexpr int kMostSpills = 64, kMostOperands = 64, kMostRank = 4, kMostStrided = 16;
inline constexpr int kSpills = 0;
inline constexpr int kPointers = kSpills + 64 * kMostSpills;
inline constexpr int kSteps = kPointers + 8 * kMostOperands;  // by operand, then by axis, counted from the innermost one
inline constexpr int kExtents = kSteps + 8 * kMostOperands * kMostRank;
inline constexpr int kCounters = kExtents + 8 * kMostRank;
inline constexpr int kOffsets = (kCounters + 8 * kMostRank + 63) / 64 * 64;  // of a vector's elements, strided operands
inline constexpr int kStreaming = kOffsets + 64 * kMostStrided;              // is what is written to go past the caches?
inline constexpr int kHead = kStreaming + 8;                                 // elements before the first whole vector of memory
inline constexpr int kFrame = kStreaming + 64;

inline constexpr int kGathered = 8;    // elements that an instruction gathers
inline constexpr int kMostPicked = 4;  // strides

inline int pointer(size_t i) { return kPointers + 8 * static_cast<int>(i); }
inline int step(size_t i, int axis) { return kSteps + 8 * (static_cast<int>(i) * kMostRank + axis); }
inline int extent(int axis) { return kExtents + 8 * axis; }
inline int counter(int axis) { return kCounters + 8 * axis; }

inline constexpr const Xbyak::Reg64* kSaved[] = {&Xbyak::util::rbp, &Xbyak::util::rbx, &Xbyak::util::r12,
                                                 &Xbyak::util::r13, &Xbyak::util::r14, &Xbyak::util::r15};
// The last one has the function's argument, which is read before.
inline constexpr const Xbyak::Reg64* kPlaces[] = {&Xbyak::util::rbx, &Xbyak::util::rsi, &Xbyak::util::r8,  &Xbyak::util::r9,
                                                  &Xbyak::util::r10, &Xbyak::util::r11, &Xbyak::util::r12, &Xbyak::util::r13,
                                                  &Xbyak::util::r14, &Xbyak::util::r15, &Xbyak::util::rdi};
// Where elements lie apart, the last two of these have what lies between them instead: once, and three times.
inline constexpr size_t kStrideRegisters = 2;
inline constexpr const Xbyak::Reg64 *kOnce = kPlaces[std::size(kPlaces) - 2], *kThrice = kPlaces[std::size(kPlaces) - 1];

}  // namespace dalsegno::halide_gen::frame
