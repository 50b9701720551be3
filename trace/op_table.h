// The one table of op kinds. X(name, inputs, result, effects, note)
//   name    enum member kName is written Op::name in text form
//   inputs  number of input values, -1 = varies
//   result  1 if the op defines a value
//   effects the most that an op of the kind may do (Effect); what was proven when it was recorded narrows it (Op::effects)
//   note    meaning; `imm`, `object`, `object2`, `name` are the op's immediates
// "leaves" = goes to op.snapshot when it does not hold. Every op that may raise has a snapshot: the state before its instruction.
#pragma once
#include <cstdint>

namespace dalsegno {

// What an op may do, said once: which frames it must be shown, what may stand before or behind it, what must be checked after it all
// follows from this set.
enum Effect : uint32_t {
  kNoEffect = 0,
  kRunsCode = 1,         // runs code nothing is known of, which sees the frames: afterwards nothing is known of anything that can change
  kWarns = 2,            // may give a warning, which sees the frames and may be shown by code of the user's; what was known stays
  kStoresNames = 4,      // may change a dict in which a folded name stands
  kDropsReferences = 8,  // may drop the last reference to something, whose finaliser or weakrefs run code
  kReadsMemory = 16,     // reads what may be changed: items, attributes, cells, globals, elements
  kWritesMemory = 32,    // changes it
  kRaises = 64,  // raises in the ordinary course, and the exception is eager's. (Without it the op leaves before its instruction, and
                 // the interpreter raises.)
};
inline constexpr uint32_t kReplaces = kWritesMemory | kDropsReferences;
inline constexpr uint32_t kReplacesName = kReplaces | kStoresNames;
inline constexpr uint32_t kWarnsOnly = kWarns | kReadsMemory | kWritesMemory | kRaises;
inline constexpr uint32_t kArrayEffects = kWarns | kReadsMemory | kRaises;  // of an array op: it may be put off
inline constexpr uint32_t kAnyEffect = 127;

// Frames stand in the thread's chain while such an op runs.
constexpr bool shows_frames(uint32_t effects) { return (effects & (kRunsCode | kWarns)) != 0; }
// What the trace relies on may have changed after it: guard_world ends its instruction.
constexpr bool disturbs(uint32_t effects) { return (effects & (kRunsCode | kWarns | kStoresNames | kDropsReferences)) != 0; }
// May be left out, repeated, or done while array ops wait.
constexpr bool is_pure(uint32_t effects) { return (effects & ~uint32_t{kReadsMemory}) == 0; }

}  // namespace dalsegno

#define DALSEGNO_OPS(X)                                                                                                                    \
  /* ---- loads */                                                                                                                         \
  X(param, 0, 1, kNoEffect, "parameter imm of the trace")                                                                                  \
  X(constant, 0, 1, kNoEffect, "the object `object`")                                                                                      \
  X(load_global, 0, 1, kReadsMemory, "name in dict `object`, then in dict `object2` (builtins); unbound: leaves")                          \
  X(store_global, 1, 0, kReplacesName, "dict `object`[name] = v")                                                                          \
  X(delete_global, 0, 0, kReplacesName, "del dict `object`[name]; missing: leaves")                                                        \
  X(func_closure, 1, 1, kNoEffect, "cell imm of the closure of function v")                                                                \
  X(func_default, 1, 1, kNoEffect, "positional default imm of function v")                                                                 \
  X(func_kwdefault, 1, 1, kReadsMemory, "keyword-only default `name` of function v; missing: leaves")                                      \
  X(cell_new, -1, 1, kNoEffect, "new cell holding v, or empty without input")                                                              \
  X(cell_get, 1, 1, kReadsMemory, "contents of cell v; empty: leaves")                                                                     \
  X(cell_set, 2, 0, kReplaces, "contents of cell v0 = v1")                                                                                 \
  X(cell_delete, 1, 0, kReplaces, "empty cell v; already empty: leaves")                                                                   \
  /* ---- guards */                                                                                                                        \
  X(guard_type, 1, 0, kNoEffect, "type(v) is `object`")                                                                                    \
  X(guard_array, 1, 0, kNoEffect, "v is an exact, aligned, native ndarray of facts: dtype and rank")                                       \
  X(guard_true, 1, 0, kNoEffect, "v (a truth value) is true")                                                                              \
  X(guard_false, 1, 0, kNoEffect, "v (a truth value) is false")                                                                            \
  X(guard_is, 1, 0, kNoEffect, "v is `object`")                                                                                            \
  X(guard_is_not, 1, 0, kNoEffect, "v is not `object`")                                                                                    \
  X(guard_truthy, 1, 0, kNoEffect, "v is an instance of class `object`, which has neither __bool__ nor __len__")                           \
  X(guard_function, 1, 0, kNoEffect, "function v has code `object` and the globals dict imm (object)")                                     \
  X(guard_defaults, 1, 0, kNoEffect, "function v has imm positional defaults")                                                             \
  X(guard_builtin, 1, 0, kNoEffect,                                                                                                        \
    "v is a method written in C, bound to an object, by `object`: a method descriptor, or a function of Cython's")                         \
  X(guard_quiet_iterator, 1, 0, kNoEffect, "the next of iterator v runs no code of the user's (hook::quiet_iterator)")                     \
  X(guard_quiet_lookup, 2, 0, kReadsMemory, "looking plain v1 up in exact dict or set v0 runs no code of the user's (hook/lookups.h)")     \
  X(guard_waiting, 1, 0, kReadsMemory,                                                                                                     \
    "exact generator v, with globals dict `object2`, waits in code `object` to go on at imm; its slots in use are bound as the digits of " \
    "name say")                                                                                                                            \
  X(guard_world, 0, 0, kNoEffect, "nothing outside changed that the trace relies on while the instruction before ran: see Effect")         \
  /* ---- python ops */                                                                                                                    \
  X(get_attr, 1, 1, kAnyEffect, "v.name")                                                                                                  \
  X(own_attr, 1, 1, kReadsMemory,                                                                                                          \
    "v.name, kept by v itself. Class `object`, in which name is `object2` or (-1) nothing; otherwise leaves")                              \
  X(class_attr, 1, 0, kNoEffect, "v has no attribute name of its own. Class `object`, in which name is `object2`; otherwise leaves")       \
  X(set_own_attr, 2, 0, kReplacesName, "v0.name = v1, kept by v0 itself. Class as in own_attr; otherwise leaves")                          \
  X(make_instance, 0, 1, kNoEffect, "a new, empty instance of class `object`, in which name (__init__) is `object2`; otherwise leaves")    \
  X(load_special, 1, 1, kAnyEffect, "name of type(v), bound to v: __enter__ and the like; missing: leaves")                                \
  X(super_attr, 2, 1, kAnyEffect, "super(v0, v1).name")                                                                                    \
  X(set_attr, 2, 0, kAnyEffect, "v0.name = v1")                                                                                            \
  X(del_attr, 1, 0, kAnyEffect, "del v.name")                                                                                              \
  X(get_item, 2, 1, kAnyEffect, "v0[v1]; imm: of an array.array, its typecode")                                                            \
  X(set_item, 3, 0, kAnyEffect, "v0[v1] = v2; imm: as get_item's")                                                                         \
  X(del_item, 2, 0, kAnyEffect, "del v0[v1]")                                                                                              \
  X(binary, 2, 1, kAnyEffect, "v0 imm v1; imm: BinaryOp")                                                                                  \
  X(inplace, 2, 1, kAnyEffect, "v0 imm= v1; imm: BinaryOp")                                                                                \
  X(unary, 1, 1, kAnyEffect, "imm v; imm: UnaryOp")                                                                                        \
  X(compare, 2, 1, kAnyEffect, "v0 imm v1; imm: Py_LT .. Py_GE")                                                                           \
  X(contains, 2, 1, kAnyEffect, "v0 in v1; imm 1: not in")                                                                                 \
  X(is_, 2, 1, kNoEffect, "v0 is v1; imm 1: is not")                                                                                       \
  X(truth, 1, 1, kAnyEffect, "bool(v)")                                                                                                    \
  X(not_, 1, 1, kAnyEffect, "not v")                                                                                                       \
  X(call, -1, 1, kAnyEffect, "v0(v1 ..); imm: number of positional arguments, `object`: tuple of keyword names or -1")                     \
  X(call_tree, -1, 1, kAnyEffect, "v0(v1 ..), imm: their number; v0 was a jitted function, whose tree is run by the same machine")         \
  X(call_ex, -1, 1, kAnyEffect, "v0(*v1, **v2)")                                                                                           \
  X(method_func, 1, 1, kNoEffect, "__func__ of exact bound method v")                                                                      \
  X(method_self, 1, 1, kNoEffect, "__self__ of exact bound method v, written in Python or C")                                              \
  X(bind_method, 2, 1, kNoEffect, "method descriptor or function v0 bound to v1, an object of its type")                                   \
  X(jitted_func, 1, 1, kNoEffect, "the plain function of jitted function v")                                                               \
  X(build_tuple, -1, 1, kNoEffect, "(v0, ..)")                                                                                             \
  X(build_list, -1, 1, kNoEffect, "[v0, ..]")                                                                                              \
  X(build_set, -1, 1, kAnyEffect, "{v0, ..}")                                                                                              \
  X(build_map, -1, 1, kAnyEffect, "{v0: v1, ..}")                                                                                          \
  X(build_string, -1, 1, kNoEffect, "''.join of exact strings")                                                                            \
  X(build_slice, -1, 1, kNoEffect, "slice(v0, v1[, v2])")                                                                                  \
  X(list_append, 2, 0, kWritesMemory, "v0.append(v1), v0 an exact list")                                                                   \
  X(list_extend, 2, 0, kAnyEffect, "v0.extend(v1)")                                                                                        \
  X(list_to_tuple, 1, 1, kNoEffect, "tuple of exact list v")                                                                               \
  X(set_add, 2, 0, kAnyEffect, "v0.add(v1)")                                                                                               \
  X(set_update, 2, 0, kAnyEffect, "v0.update(v1)")                                                                                         \
  X(map_add, 3, 0, kAnyEffect, "v0[v1] = v2, v0 an exact dict")                                                                            \
  X(dict_update, 2, 0, kAnyEffect, "v0.update(v1), {**v1}")                                                                                \
  X(dict_merge, 2, 0, kAnyEffect, "keyword arguments **v1 into dict v0; duplicate: leaves")                                                \
  X(dict_values, 1, 1, kReadsMemory, "tuple of the values of exact dict v; other keys than the names in tuple `object`, in order: leaves") \
  X(convert, 1, 1, kAnyEffect, "str, repr or ascii of v; imm 1, 2, 3")                                                                     \
  X(format, -1, 1, kAnyEffect, "format(v0[, v1])")                                                                                         \
  X(unpack, 1, 1, kAnyEffect, "tuple of exactly imm items of v; exact tuple or list of another length: leaves")                            \
  X(unpack_ex, 1, 1, kReadsMemory,                                                                                                         \
    "tuple of the first imm & 255 items of exact tuple or list v, the list of those between, the last imm >> 8; too short: leaves")        \
  X(tuple_item, 1, 1, kNoEffect, "item imm of exact tuple v")                                                                              \
  X(get_len, 1, 1, kAnyEffect, "len(v), or, of an array v, its extent along axis imm")                                                     \
  X(get_iter, 1, 1, kAnyEffect, "iter(v)")                                                                                                 \
  X(iter_next, 1, 1, kAnyEffect,                                                                                                           \
    "next item of iterator v. imm 1: exhausted leaves to exit_snapshot. imm 0: expects exhaustion; an item leaves to exit_snapshot, "      \
    "which may name this op's value")                                                                                                      \
  X(import_name, 2, 1, kAnyEffect, "__import__(name, globals dict `object`, level v0, fromlist v1)")                                       \
  X(import_from, 1, 1, kAnyEffect, "from v import name")                                                                                   \
  X(make_function, -1, 1, kNoEffect,                                                                                                       \
    "function of code v0 with globals dict `object`; imm: flags as MAKE_FUNCTION's (1 defaults, 2 kwdefaults, 4 annotations, 8 closure), " \
    "inputs in that order")                                                                                                                \
  X(set_function_attribute, 2, 1, kWritesMemory, "function v0 with attribute imm (1, 2, 4, 8) set to v1; the result is v0")                \
  /* ---- generators (hook/generators.h) */                                                                                                \
  X(waiting_slot, 1, 1, kWritesMemory, "taken out of slot imm of the frame of generator v, which waits; imm -1: its function")             \
  X(begin_to_run, 1, 0, kWritesMemory, "generator v, whose slots have been emptied, counts as running; it has imm variables")              \
  X(wait_at, -1, 0, kWritesMemory,                                                                                                         \
    "generator v0 of code `object` waits, to go on at imm, with the values that follow in its slots that name says are bound")             \
  X(end_running, 1, 0, kWritesMemory, "generator v returns, by its instruction at imm")                                                    \
  /* ---- scopes and lifetimes */                                                                                                          \
  X(enter, -1, 0, kNoEffect, "a frame of function v0 begins; its arguments follow")                                                        \
  X(leave_frame, 1, 0, kNoEffect, "the innermost frame returns v")                                                                         \
  X(release, -1, 0, kDropsReferences, "no local or stack slot holds these values any more")                                                \
  /* ---- ends */                                                                                                                          \
  X(return_, 1, 0, kNoEffect, "return v from the trace's function. imm > 0: what its frame then lets go of, snapshot imm - 1, in order")   \
  X(jump, 0, 0, kNoEffect, "go on with trace imm of this function's tree; its parameters are the slots of the snapshot, in order")         \
  X(leave, 0, 0, kNoEffect, "the recording ended: leaves at the snapshot")
