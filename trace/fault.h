// Planted faults: what tests let go wrong on purpose, to see that the differential fuzzer finds it. One at a time, none in real life: where
// it can, a fault is decided when a trace is recorded, lowered or left; nowhere does it cost more than the load of a byte.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

// X(name, what goes wrong)
#define DALSEGNO_FAULTS(X)                                                                          \
  X(none, "")                                                                                       \
  /* ---- recording */                                                                              \
  X(missing_effect, "calls of unknown functions are taken to run no code")                          \
  X(missing_name_effect, "storing an item is taken to change no global, and to drop nothing")       \
  X(wrong_exit, "a side trace is attached to another exit, too")                                    \
  /* ---- lowering */                                                                               \
  X(dropped_guard, "branches are not guarded")                                                      \
  X(dropped_function_guard, "the code of callees is not guarded")                                   \
  X(dropped_world_guard, "nobody asks whether the run may go on")                                   \
  X(stale_class, "attributes of classes are not looked up again")                                   \
  X(lost_release, "what dies is kept until the trace is left")                                      \
  X(unordered_deaths, "a frame that ends lets go of its variables in another version's order")      \
  X(lost_cell_write, "variables of closures are not written")                                       \
  X(lost_attribute_write, "attributes of instances are not written")                                \
  X(lost_loop_variable, "two unboxed variables change places at a back edge")                       \
  X(swapped_operands, "unboxed subtractions have their operands swapped")                           \
  X(loose_items, "items are taken without a reference, though their list may drop them")            \
  X(unelided, "no temporary is computed into")                                                      \
  X(missed_alias, "array ops wait across writes")                                                   \
  /* ---- steps */                                                                                  \
  X(stale_world, "folded globals are not looked up again")                                          \
  X(ignored_overflow, "ints wrap")                                                                  \
  X(ignored_scalar_flags, "floating-point flags of scalars are not looked at")                      \
  X(dropped_bounds, "an element out of bounds is the first one")                                    \
  X(unwrapped_index, "negative indices of elements count from the front")                           \
  X(wrong_scalar_type, "np.int32 is boxed as np.int64")                                             \
  X(wrong_pair_type, "np.complex128 is boxed as Python's complex number")                           \
  X(wrong_row, "a row that is built late is the first one")                                         \
  X(wrong_view_stride, "slices with a step take neighbours")                                        \
  X(ignored_overlap, "arrays are written while they are read")                                      \
  X(lost_turn, "what np.roll moves beyond the end does not come back at the beginning")             \
  X(lost_summand, "the last one of several arrays that a generator expression gives is not summed") \
  X(fold_element, "a generator expression takes the element before another one")                    \
  X(waiting_swapped, "a generator waits with two of its variables exchanged")                       \
  X(lost_place, "arrays that are rounded are multiplied by themselves first")                       \
  X(first_block, "operands of a group that is done in blocks are those of its first block")         \
  X(lost_imaginary, "numbers lose their imaginary part where they are computed with arrays")        \
  X(unequal_halves, "sums that are made piece by piece are cut elsewhere than NumPy cuts them")     \
  X(unnamed_values, "names of keyword arguments are not compared")                                  \
  X(kept_arguments, "arguments are not taken over from the caller")                                 \
  /* ---- native code */                                                                            \
  X(native_bounds, "native code takes the first element for one out of bounds")                     \
  X(native_exit, "native code leaves behind what it could not do")                                  \
  X(native_registers, "native code leaves without writing one of the loop's variables")             \
  X(native_hoisted, "native code looks at a loop's elements as it enters it, but for the last one") \
  X(native_forwarded, "native code hands on what a turn has stored, whatever the range's step")     \
  X(native_joined, "native code selects what the other way has computed")                           \
  X(native_range, "native code leaves without telling a range's iterator how far it has come")      \
  X(native_overflow, "ints wrap in native code")                                                    \
  X(native_recursion, "remainders in functions that call themselves have the dividend's sign")      \
  X(native_parts, "native code takes the real part of a complex number for the imaginary one")      \
  X(native_flags, "native code lets pass what NumPy warns of in products of complex numbers")       \
  X(native_count, "native code does not tell an enumerate how far it has come")                     \
  /* ---- leaving, and what others see meanwhile */                                                 \
  X(wrong_snapshot_slot, "two locals change places where a trace is left")                          \
  X(lost_snapshot_value, "a local is lost where a trace is left")                                   \
  X(wrong_resume_offset, "the interpreter goes on some instructions later")                         \
  X(left_at_the_head, "a loop that was entered in the middle of a call is left at its head")        \
  X(wrong_raise_line, "an exception is raised behind its instruction")                              \
  X(repeated_raise, "an instruction that raised is done again")                                     \
  X(unlinked_frames, "unknown code sees no frames of the trace")                                    \
  X(empty_frames, "what shows a warning sees a frame without variables")                            \
  X(wrong_shown_line, "unknown code sees the outermost frame where it began")                       \
  X(ignored_breaker, "signals and other threads wait until the run is over")                        \
  X(ignored_observers, "a run goes on when the thread is traced")                                   \
  /* ---- kernels and the store */                                                                  \
  X(wrong_kernel_rule, "kernels add instead of subtracting")                                        \
  X(short_rest, "of what is left of a row behind its vectors, kernels leave out the last element")  \
  X(ignored_flags, "floating-point flags of kernels are not looked at")                             \
  X(hoarded, "arrays that have died are kept until all array ops that waited are done")             \
  X(always_c_order, "results of kernels are in C order")                                            \
  X(wrong_stored_op, "subtractions read from a store are additions")                                \
  X(foreign_parent, "side traces are attached to another process's parent, too")

namespace dalsegno {

enum class Fault : uint8_t {
#define X(name, what) name,
  DALSEGNO_FAULTS(X)
#undef X
};

extern std::atomic<Fault> g_fault;
inline bool planted(Fault fault) { return g_fault.load(std::memory_order_relaxed) == fault; }

// "" for none. False: there is no fault of this name, and none is planted.
bool plant(const std::string& name);
std::vector<std::string> faults();

}  // namespace dalsegno
