// What is to become one function of native code, as plain data: the steps of a loop, of the loops that it leads to, and of the side traces
// between them. No Python.h here. Operands are registers, as the steps have them (replay/machine/step.h); what an instruction does not know
// natively it does by calling its step's own function.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "replay/typed/calls.h"
#include "replay/typed/rep.h"

namespace dalsegno::native {

using typed::Rep;

// How a step is done natively. rep: the operands' representation.
enum class Do : uint8_t {
  kStep,            // by its own function
  kBinary,          // imm: BinaryOp
  kUnary,           // imm: UnaryOp
  kCompare,         // imm: Py_LT .. Py_GE
  kGuardedCompare,  // the same, and n: the truth that the result must have
  kNot,
  kTruth,
  kConvert,      // to `to`
  kGuardTruth,   // a; n: the truth it must have
  kLoad,         // dst: the element of the array in object register a at `list`
  kStore,        // c is stored there
  kRangeNext,    // c: the next item of the range iterator in object register a
  kRangeEnd,     // the same, where none is expected
  kBox,          // dst: the object of a, unless it is there
  kCall,         // callee, of `list`
  kGuardType,    // the type of the object in a is `object`
  kGuardArray,   // the array in a has n dimensions and the dtype `rep`
  kGuardWorld,   // no code has run that nobody has looked after; n: and folded names are to be looked at
  kItem,         // dst: the item b of the list or tuple in a
  kSetItem,      // the same of a list becomes c
  kTakeItem,     // dst: the item b of what is a list for certain (imm: a tuple), n: with a reference; c: unboxed, as rep, if that is one
  kNextItem,     // the same, of the list's or tuple's iterator in a
  kNextElement,  // dst: the next element of the array, of one dimension, that the iterator in a goes through
  kPutItem,      // item b of what is a list for certain becomes c: an object or, as rep, unboxed
  kUnbox,        // dst: the number in object register a, or what it was, if there is none
  kLength,       // dst: of the list or tuple in a
  kRelease,      // list: object registers whose references are dropped
  kJump,         // to the loop `target`: `moves`, `drops`
  kEnd,          // the region ends here: the step is the machine's
};

// Does native code take numbers of this kind out of their objects itself?
constexpr bool reads_number(Rep rep) { return typed::is_python_number(rep) || rep == Rep::kNpFloat64; }

// A value on its way to where the loop's head expects it: its unboxed part, its object, or both (then the object may be missing).
struct Move {
  int32_t from = -1, to = -1;  // unboxed
  Rep rep = Rep::kNone;
  int32_t from_object = -1, to_object = -1;
  bool takes = false;    // the reference goes along
  bool boxes = false;    // an object that is missing is made of `from`
  int32_t same = -1;     // the move whose object it shares, if there is none yet
  bool unboxes = false;  // `to` becomes the number in the object, if there is one, else `from` (-1: it leaves)
};

struct Instr {
  Do what = Do::kStep;
  Rep rep = Rep::kNone, to = Rep::kNone;
  bool runs_code = true;  // the step may run code nothing is known of
  int32_t dst = -1, a = -1, b = -1, c = -1, imm = 0, n = 0;
  int32_t object = -1;  // index into Region's addresses
  typed::Callee callee = typed::Callee::kNone;
  int32_t side = -1;    // block that goes on where the guard fails, or the iterator ends, or -1: that leaves
  int32_t target = 0;   // kJump: the block
  bool checks = false;  // kJump: whether the objects are what that loop takes them for has to be asked
  std::vector<int32_t> list;
  std::vector<Move> moves;
  std::vector<int32_t> drops;  // object registers, mostly null
  std::vector<int32_t> needs;  // unboxed registers that whoever goes on from here may look at, beside those that instructions read
  bool needs_all = false;
  bool asks = false;  // kJump: whether the run may go on has to be asked each time
};

// A program: a loop (block 0 is where the function begins) or a side trace.
struct Block {
  int32_t parent = -1;                   // block it hangs on; -1: a loop
  int32_t offset = 0;                    // of its registers, which each loop and its side traces have for themselves, in the file
  int32_t depth = 0;                     // blocks around it
  int32_t first_reg = 0;                 // registers before this one are its parent's
  int32_t guard = -1;                    // a side trace's: the number of the instruction that leads to it
  std::vector<int32_t> drops;            // object registers that die on the way to it, mostly null
  std::vector<int32_t> owns;             // object registers that hold a borrowed object until then
  std::vector<int32_t> nulls;            // object registers of its own
  std::vector<Move> boxes;               // unboxed values whose objects are made on the way to it
  bool asks = false;                     // whether it may be entered has to be asked each time
  std::vector<Instr> instrs;             // what they are numbered by, in `number`, tells the machine where to go on
  int32_t number = 0;                    // of the first one; the others follow
  std::map<int32_t, int64_t> constants;  // registers that hold the same bits all the time
};

constexpr int32_t kDeepest = 8;

struct Region {
  std::vector<Block> blocks;  // parents before their children
  int32_t objects = 0;        // how many addresses it has of its own
  // For tests: the machine does this instruction at this turn of a run.
  int32_t forced = -1;
  int64_t forced_turn = 0;
};

// Where the objects of the interpreter and of NumPy have what is looked at.
struct Layout {
  int32_t type = 8;       // of any object
  bool immortal = false;  // references are counted in 32 bits, and not at all where all of them are set
  int32_t size = 0, list_items = 0, tuple_items = 0;
  int32_t float_value = 0, numpy_double_value = 0;
  int32_t int_size = 0, int_digit = 0;  // of ints
  bool int_tagged = false;              // int_size holds sign and number of digits as CPython has them since 3.12
  int32_t range_start = -1, range_step = -1, range_length = -1, range_index = -1;  // -1: there is no such field; start < 0: unknown
  int32_t iterator_position = 0, iterator_sequence = 0;                            // of lists and tuples
  int32_t data = 0, rank = 0, dims = 0, strides = 0, descr = 0, flags = 0;         // of an array
  int32_t dtype_number = 0, byteorder = 0;                                         // of its dtype
  int32_t aligned = 0, writeable = 0, warns = 0;                                   // flags
  std::map<Rep, int32_t> numbers;                                                  // of dtypes
};

// What native code is given beside the registers (which the functions below are told by their place in the file). It returns the number of
// the instruction that is to be done by the machine, which goes on from there, or kElsewhere: a step it has called has left.
struct Frame {
  void* machine = nullptr;
  const volatile unsigned char* breaker = nullptr;  // not 0: something waits for the thread
  const bool* unsettled = nullptr;
  int32_t (*step)(Frame*, int32_t number) = nullptr;  // does one by its step: what came of it
  void (*drop)(Frame*, int32_t reg) = nullptr;        // drops the reference in an object register; unsettled if code has run
  int32_t (*quiet)(Frame*, int32_t reg) = nullptr;    // drops the reference, if that runs no code: 1; else 0
  // A typed operator on two numbers (their bits), by the code that its step uses: 1, and the result; 0: the step is to be done.
  int32_t (*scalar)(Frame*, int32_t number, int64_t a, int64_t b, int64_t* out) = nullptr;
  int32_t (*holds)(Frame*, int32_t block) = nullptr;   // kGuardWorld, of a block with folded names
  int32_t (*ends)(Frame*, int32_t reg) = nullptr;      // tells an iterator over a list or tuple that it has ended, if that runs no code: 1
  int32_t (*fits)(Frame*, int32_t number) = nullptr;   // kJump: are the objects what the loop takes them for?
  int32_t (*put)(Frame*, int32_t number) = nullptr;    // does a kPutItem, if that runs no code: 1; else 0
  int32_t (*enters)(Frame*, int32_t block) = nullptr;  // may the side trace be entered?
  void* (*box)(Frame*, int32_t rep, int64_t bits) = nullptr;                    // a new reference, or null
  int32_t (*unbox)(Frame*, int32_t rep, void* object, int64_t* out) = nullptr;  // 1; 0: it is no such number
  void (*discard)(Frame*, void* const* made, int32_t n) = nullptr;              // drops boxes nobody has seen
  const void* const* addresses = nullptr;                                       // in the order of Address, then the region's own
  // Of each kind of float whose boxes jumps make again and again, one that nobody has: the next box.
  void* spare[2] = {};
  int32_t loaded[kDeepest] = {};  // by depth: the block whose constants are in the registers, or 0
  void* extra = nullptr;
};
constexpr int32_t kElsewhere = -1;
enum Came : int32_t { kNext, kLeft };  // of a step: on to the next one; the run has left
enum Address : int32_t {
  kArrayType,
  kRangeIteratorType,
  kSequenceIteratorType,
  kListType,
  kTupleType,
  kIntType,
  kFloatType,
  kNumpyDoubleType,
  kTrue,
  kFalse,
  kAddresses
};

union Register {
  void* o;
  int64_t i;
  double f;
  float s;
};
using Function = int32_t (*)(Register* r, Frame* frame);

// The region as LLVM IR: one function, `symbol`. The text is the same for the same region in every process. "": it cannot be done.
std::string to_ir(const Region& region, const Layout& layout, const std::string& symbol);

}  // namespace dalsegno::native
