// The trace as plain data: what was recorded from an anchor, in SSA form. No Python.h here.
// An op's value is named by the op's index. Objects of the interpreter are indices into Trace::objects.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trace/array_fn.h"
#include "trace/op_table.h"
#include "trace/reasons.h"
#include "trace/snapshots.h"

namespace dalsegno {

enum class OpKind : uint8_t {
#define X(name, inputs, result, effects, note) name,
  DALSEGNO_OPS(X)
#undef X
      kCount
};

// Python's binary operators, in the order of the interpreter's NB_ codes (opcode.h: NB_ADD .. NB_XOR).
enum class BinaryOp : int32_t {
  add,
  and_,
  floor_divide,
  lshift,
  matmul,
  multiply,
  remainder,
  or_,
  power,
  rshift,
  subtract,
  true_divide,
  xor_
};
// rint: what ndarray.round() does, between two other operators, with what it has made; of arrays alone.
enum class UnaryOp : int32_t { negative, positive, invert, rint };

// The NumPy function that the operator on arrays is, or none. (A power depends on its exponent.)
ArrayFn array_fn_of(BinaryOp op);

// What is known of an array value.
struct ArrayFacts {
  DType dtype = DType::kBool;
  int32_t rank = 0;  // -1, where facts may be missing: they are
  bool operator==(const ArrayFacts&) const = default;
};

inline constexpr ArrayFacts kNoFacts{DType::kBool, -1};

struct Op {
  OpKind kind = OpKind::constant;
  ArrayFn fn = ArrayFn::none;    // a pure array op with this known meaning (then `facts` is its result), else none
  uint32_t effects = kNoEffect;  // Effect: what of its kind's it may have
  int32_t imm = 0;
  int32_t object = -1;  // index into Trace::objects
  int32_t object2 = -1;
  int32_t name = -1;        // index into Trace::names
  int32_t first_input = 0;  // into Trace::inputs
  int32_t n_inputs = 0;
  int32_t snapshot = -1;       // state before the instruction, or -1; of guards of branches, guard_world, release, jump: behind it
  int32_t exit_snapshot = -1;  // iter_next only
  int32_t facts = -1;          // index into Trace::facts: the value's (array op) or the guarded ones (guard_array)
  int32_t line = 0;            // source line, for people
  int32_t depth = 0;           // frames recorded through around it, for people
  int32_t at = -1;  // guard_world, release, jump: the instruction that frames stand at meanwhile (code units), or -1: as in snapshot
  bool operator==(const Op&) const = default;
};

// An object of the interpreter a trace refers to, and how to fetch it again in another process.
struct ObjectRef {
  std::string source;       // path, e.g. "self", "self.globals", "self.globals[helper]", "self.code.const[3]"; "" = cannot be fetched again
  std::string fingerprint;  // what must be the same about it, e.g. "function:<sha256 of code>", "type:builtins.int", "const:<repr by bits>"
  bool operator==(const ObjectRef&) const = default;
};

// A global (or attribute of a module) whose value the trace has folded in.
struct Folded {
  int32_t dict = -1;  // object
  int32_t name = -1;
  int32_t value = -1;  // object; -1: the name is absent (a builtin is not shadowed)
  bool operator==(const Folded&) const = default;
};

enum class AnchorKind : uint8_t { entry, loop, exit };

struct Trace {
  int32_t number = 0;  // within its function's tree; 0 is the root
  AnchorKind anchor = AnchorKind::entry;
  int32_t parent = -1;      // exit: the trace that is left, and
  int32_t parent_op = -1;   //       the op that leaves it
  int32_t parent_exit = 0;  //       0: by op.snapshot, 1: by op.exit_snapshot
  Snapshot entry;           // loop, exit: frames at the anchor, in the trace's own values
  std::vector<Op> ops;      // ops[0..n_params) are `param`
  int32_t n_params = 0;
  std::vector<ValueId> inputs;
  Snapshots snapshots;
  std::vector<ObjectRef> objects;  // objects[0] is the jitted function ("self")
  std::vector<std::string> names;
  std::vector<ArrayFacts> facts;
  std::vector<Folded> folded;
  Reason reason = Reason::none;  // why the recording ended, if not by return or jump
  std::string where;             // function:line of the end, for people
  bool operator==(const Trace&) const = default;

  Snapshot snapshot(int32_t i) const { return snapshots.at(i); }  // built: do not ask for it twice
  const ValueId* inputs_of(const Op& op) const { return inputs.data() + op.first_input; }
};

// Name of an op kind ("get_attr"), its number of inputs (-1 = varies), whether it defines a value.
const char* op_name(OpKind kind);
int op_inputs(OpKind kind);
bool op_has_result(OpKind kind);
// The most that an op of this kind may do.
uint32_t op_effects(OpKind kind);

// Checks that a trace is well formed: inputs defined before use, counts, indices in range, snapshots where needed, one end, at
// the end. Returns "" or what is wrong. Traces read from a store are checked before use.
std::string verify(const Trace& trace);

// Checks a verified trace against the (verified) others of its function's tree: a side trace fits the exit it is attached to, a jump
// the anchor it goes to. Returns "" or what is wrong.
std::string verify_links(const Trace& trace, const std::vector<Trace>& traces);

// The trace as text, one op a line. `source_line(line)` is not consulted here; dalsegno/explain.py sets ops beside source.
std::string print(const Trace& trace);
std::string print_op(const Trace& trace, int32_t op);

}  // namespace dalsegno
