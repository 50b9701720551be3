// A code object's instructions, decoded once and normalised over CPython 3.11 to 3.14. Needs the GIL.
#pragma once
#include <Python.h>

#include <memory>
#include <set>
#include <vector>

#include "trace/recorder/instruction_table.h"

namespace dalsegno::recorder {

enum class Opcode : uint8_t {
  unknown,
#define X(name) name,
  DALSEGNO_INSTRUCTIONS(X)
#undef X
};

// One logical instruction. EXTENDED_ARG prefixes, and KW_NAMES and PRECALL before CALL, belong to the instruction they serve, so
// that `start` is always a legal place to resume at (docs/hook.md). Offsets in code units.
struct Instr {
  Opcode op = Opcode::unknown;
  int raw = 0;  // CPython's opcode
  int arg = 0;
  int start = 0;     // first unit, prefixes included
  int at = 0;        // the instruction itself
  int next = 0;      // following instruction
  int target = -1;   // jumps: destination
  int kwnames = -1;  // CALL on 3.11 and 3.12: index of the constant with the keyword names
  int line = 0;
};

const char* name_of(const Instr& instr);  // CPython's, of the version that runs

// A test in front of a loop's body, that may leave the loop: the loop jumps back to `from`, its body begins at `to`. Straight on.
struct LoopTest {
  int from, to;
};

// Decoded once and kept with the code object, as long as that lives.
class CodeInfo {
 public:
  // Keeps the code object alive.
  static std::shared_ptr<const CodeInfo> of(PyCodeObject* code);

  explicit CodeInfo(PyCodeObject* code);  // borrowed
  CodeInfo(const CodeInfo&) = delete;

  // The logical instruction that unit `offset` belongs to, or null.
  const Instr* at(int offset) const;
  int nlocalsplus() const { return code->co_nlocalsplus; }
  // Instructions before the first RESUME (MAKE_CELL, COPY_FREE_VARS): they run before anything is announced.
  const std::vector<Instr>& prefix() const { return prefix_; }
  // Where the first announced instruction may be: RESUME, or the one after it.
  bool is_entry(int offset) const { return offset == first_ || offset == at(first_)->next; }
  // Likewise of a generator that goes on behind a yield, at its RESUME.
  bool goes_on_at(int resume, int offset) const { return offset == resume || offset == at(resume)->next; }

  // Is it before the first announced instruction?
  bool is_before_entry(int offset) const { return offset <= first_; }
  // Does it hand on what another generator yields, or awaits something?
  bool delegates() const { return delegates_; }

  // Has it a loop?
  bool loops() const { return loops_from(0); }
  // May one be reached from `offset`?
  bool loops_from(int offset) const { return last_jump_back_ >= offset; }
  // Is the instruction at `offset` within one?
  bool in_loop(int offset) const;
  // Does one jump back there?
  bool is_header(int offset) const;
  // Does the trace of one begin there? Behind the test where the compiler writes that once (3.14), so that the first turn to be recorded
  // is one, though the test may end the loop; before, the compiler wrote it twice, the second time in front of the jump back.
  bool is_head(int offset) const;
  // The test that `offset` is in, or null.
  const LoopTest* test_at(int offset) const;
  // Does it bind or delete the global with this name (an index into co_names) itself?
  bool stores_global(int name) const { return stored_globals_.contains(name); }
  // Does it look that name up, as a global? As an attribute of its first variable?
  bool loads_global(PyObject* name) const { return has(loaded_globals_, name); }
  bool asks_first(PyObject* name) const { return has(asked_, name); }

  PyCodeObject* code;

 private:
  bool has(const std::set<int>& names, PyObject* name) const;
  void read_lines();
  void find_tests();
  LoopTest test_from(int header, int end) const;
  bool is_over_a_jump_back(const Instr& branch, int header) const;
  std::vector<Instr> instrs_;
  std::vector<LoopTest> tests_;
  std::vector<int> by_offset_;
  std::vector<Instr> prefix_;
  std::set<int> stored_globals_, loaded_globals_, asked_;
  int first_ = 0;
  int last_jump_back_ = -1;
  bool delegates_ = false;
};

// Reads opcode numbers and cache sizes of the running interpreter. False with an exception set on failure.
bool init_instructions();

// What differs between the versions, one fact a function.
inline constexpr bool kHas313Calls = PY_VERSION_HEX >= 0x030d0000;  // stack: callable, self or NULL (before: method or NULL, callable)
inline constexpr bool kLocalsWriteThrough = PY_VERSION_HEX >= 0x030d0000;  // f_locals of a running frame: assigning sets the variable
// Special methods are recorded through where the interpreter has no ways of its own from an instruction to them.
inline constexpr bool kMethodsOfClasses = PY_VERSION_HEX < 0x030c0000;
inline constexpr bool kPopsIterator = PY_VERSION_HEX >= 0x030e0000;  // POP_ITER drops an exhausted iterator (before: FOR_ITER)
inline constexpr bool kTestsOnce = PY_VERSION_HEX >= 0x030e0000;     // the test of a `while` stands in front of its body alone
inline constexpr bool kSlotForNamed =
    PY_VERSION_HEX >= 0x030e0000;               // CALL_FUNCTION_EX: a dict or NULL on top (before: as its argument says)
int for_iter_exhausted(const Instr& for_iter);  // where an exhausted FOR_ITER goes on, its iterator dropped
int for_iter_ends(const Instr& for_iter);       // where the interpreter goes from there: kPopsIterator
constexpr int kSubscripts = 26;                 // BINARY_OP on 3.14: NB_SUBSCR of opcode.h
// BINARY_OP: the operators in place come from here on, in the order of those that are not (NB_INPLACE_ADD of opcode.h).
constexpr int kInplaceFrom = 13;
int compare_op(int arg);        // COMPARE_OP's Py_LT .. Py_GE
bool compare_to_bool(int arg);  // COMPARE_OP converts its result to bool (3.13)
bool load_global_pushes_null(int arg);
int load_global_name(int arg);
bool load_attr_is_method(Opcode op, int arg);
int load_attr_name(Opcode op, int arg);

}  // namespace dalsegno::recorder
