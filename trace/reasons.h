// The one table of reasons: why a recording ended or was not made, why a trace was left. X(name, text, remedy)
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#define DALSEGNO_REASONS(X)                                                                                                 \
  X(none, "", "")                                                                                                           \
  X(instruction, "an instruction that is not recorded yet", "move it out of the hot function")                              \
  X(exception, "an exception was raised", "exceptions are raised by the interpreter")                                       \
  X(handler, "an exception handler was entered", "keep the hot path free of exceptions")                                    \
  X(generator, "the function is a generator or coroutine", "jit the function that does the array work instead")             \
  X(too_long, "the trace became too long", "jit the inner function instead")                                                \
  X(too_deep, "too many calls inside one another", "jit the inner function instead")                                        \
  X(calls_itself, "a function that calls itself is compiled on its own first", "")                                          \
  X(too_many_traces, "too many side traces", "the function behaves differently on almost every call")                       \
  X(refcount, "the callee looks at reference counts", "keep it out of the hot function")                                    \
  X(lost, "the recorder could not follow (a debugger, coverage or a trace function was active)", "record without the tool") \
  X(traced_thread, "this thread is traced, profiled or monitored", "switch the tool off")                                   \
  X(frame_kept, "somebody kept a frame object", "")                                                                         \
  X(opaque_call, "a callee that cannot be recorded through is called as it is", "")                                         \
  X(frame_reader, "a callee that looks at frames (locals, exec, eval, super ...) is called as it is", "")                   \
  X(guard, "a guard failed", "")                                                                                            \
  X(disabled, "switched off", "dalsegno.enable()")                                                                          \
  X(step_aside, "replay was measured slower than eager", "")                                                                \
  X(put_off, "calls are shorter than reading the store takes, which is done later", "")                                     \
  X(name_changed, "a global function, class or module was replaced by another within the call", "pass it as an argument")

namespace dalsegno {
enum class Reason : uint8_t {
#define X(name, text, remedy) name,
  DALSEGNO_REASONS(X)
#undef X
      kCount
};
const char* reason_name(Reason reason);
std::optional<Reason> reason_named(std::string_view name);
const char* reason_text(Reason reason);
const char* reason_remedy(Reason reason);
}  // namespace dalsegno
