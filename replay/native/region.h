// What is to become one function of native code, as plain data: the steps of a loop, of the loops that it leads to, and of the side traces
// between them. No Python.h here. Operands are registers, as the steps have them (replay/machine/step.h); what an instruction does not know
// natively it does by calling its step's own function.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "replay/typed/calls.h"
#include "replay/typed/operators.h"
#include "replay/typed/rep.h"
#include "trace/walk.h"

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
  kConvert,        // to `to`
  kGuardTruth,     // a; n: the truth it must have
  kLoad,           // dst: the element of the array in object register a at `list`
  kStore,          // c is stored there
  kRangeIterator,  // dst: the iterator over a range of `list`, as range() takes them
  kItemsIterator,  // dst: the iterator over the list or (imm) tuple in a
  kRangeNext,      // c: the next item of the range iterator in object register a
  kRangeEnd,       // the same, where none is expected
  kItemsEnd,       // dst: the next item of the list's or (imm) tuple's iterator in a, where none is expected
  kBox,            // dst: the object of a, unless it is there
  kCall,           // callee, of `list`
  kDraw,           // dst: the next number of the random generator in a, or (n 0) that the callee in a is bound to
  kDrawBits,       // dst: so many bits as b says of the generator in a, or as above
  kGuardType,      // the type of the object in a is `object`
  kGuardArray,     // the array in a has n dimensions and the dtype `rep`
  kGuardWorld,     // no code has run that nobody has looked after; n: and folded names are to be looked at
  kItem,           // dst: the item b of the list or tuple in a
  kSetItem,        // the same of a list becomes c
  kTakeItem,       // dst: the item b of what is a list for certain (imm: a tuple), n: with a reference; c: unboxed, as rep, if that is one
  kNextItem,       // the same, of the list's or tuple's iterator in a
  kNextElement,    // dst: the next element of the array, of one dimension, that the iterator in a goes through
  kPop,            // dst: the last item of what is a list for certain, in a, which no longer has it; c: unboxed, as rep, if that is one
  kHasItems,       // dst: has the object in a any? imm: the offset of their number
  kAppend,         // c, an object or, as rep, unboxed, is appended to the list in a
  kOrd,            // dst: the code of the one character of the text in a
  kSameText,       // dst: are the texts in a and b the same? imm: Py_EQ, or Py_NE: are they not?
  kLetter,         // dst: the text of one character that stands in the text in a at b
  kByte,           // dst: item b of the bytes in a, or (imm) of the bytearray
  kPutByte,        // item b of the bytearray in a becomes c
  kNumber,         // dst: item b of the array.array in a, imm: its typecode, rep: how the item lies in memory
  kPutNumber,      // item b of such an array becomes c
  kNext,           // next: the items that the iterator in a gives at once
  kPutItem,        // item b of what is a list for certain becomes c: an object or, as rep, unboxed
  kCell,           // dst: a new reference to what the cell in a holds
  kField,          // dst: a new reference to what the object in a has at imm
  kFieldItem,      // dst: a new reference to item imm of the tuple that the object in a has at n: of a function, its cells, or its defaults
  kUnpack,         // dst: a new reference to what is a tuple for certain, in a; imm: its length
  kTupleItem,      // dst: the item imm of such a tuple
  kUnbox,          // dst: the number in object register a, or what it was, if there is none
  kExtent,         // dst: of what is an array for certain, in a, along axis imm, if it has one
  kLength,         // dst: of the list or tuple in a, or (imm) of what has its number of items there
  kAttribute,      // dst: what the object in a keeps, imm: Keeps; object: where the step has found it; n, c, rep as kTakeItem's
  kSetAttribute,   // the same becomes c: an object or, as rep, unboxed
  kGuardIs,        // the object in a is `object`, or (n 0) another
  kGuardFunction,  // the object in a is a function with code `object` and the globals `list[0]`; list[1]: the functions' type
  kGuardDefaults,  // the object in a is a function with imm positional defaults; object: the functions' type
  kGuardTruthy,    // the object in a is an instance of the class `object`, which has nothing to say of its truth
  kGuardWaiting,   // the generator in a waits in code `object`, to go on at imm, with what `slots` says in its slots. list[0]: its type;
                   // [1]: None
  kTakeSlot,       // dst: what it had in slot imm of its frame, or (imm -1) its function
  kBeginToRun,     // and counts as running
  kWaitAt,  // list[0]: one that waits from now on, to go on at imm, the objects behind it in those of its slots that are bound; object: its
            // code
  kQuick,   // by its Step::exec where that neither runs code nor leaves. dst: an object, or (imm) a truth; c: unboxed, as rep (where
            // there is no dst it is read)
  kPiece,   // the same, by two unboxed ints, b and c (-1: not given)
  kLeaveFrame,  // a recorded function returns; imm: the frames that are left
  kRelease,     // list: object registers whose references are dropped
  kJump,        // to the loop `target`: `moves`, `drops`
  kEnd,         // the region ends here: the step is the machine's
};

// Does native code take numbers of this kind out of their objects itself?
constexpr bool reads_number(Rep rep) { return typed::is_python_number(rep) || typed::is_pair(rep) || rep == Rep::kNpFloat64; }

// Does it leave, as a guard of the type would, where what it takes is no number of this kind?
constexpr bool tells_types(Do what, Rep rep) { return (what == Do::kTakeItem || what == Do::kAttribute) && rep != Rep::kNone; }

// How an instance keeps an attribute.
enum Keeps : int32_t { kUnknown, kInSlot, kInValues, kAsItem };  // kAsItem: of a named tuple

// A value on its way to where the loop's head expects it: its unboxed part, its object, or both (then the object may be missing).
struct Move {
  int32_t from = -1, to = -1;  // unboxed
  Rep rep = Rep::kNone;
  int32_t from_object = -1, to_object = -1;
  bool takes = false;    // the reference goes along
  bool boxes = false;    // an object that is missing is made of `from`
  int32_t same = -1;     // the move whose object it shares, if there is none yet
  bool unboxes = false;  // `to` becomes the number in the object, if there is one, else `from` (-1: it leaves)
  bool checks = false;   // which must not be negative then
};

// What a jump asks of an object first.
struct Promise {
  // kIsOfTypeOrNull: where there is no object the number is of that type. kIsQuiet: an iterator that runs no code.
  enum What : uint8_t { kIsObject, kIsOfType, kIsOfTypeOrNull, kIsQuiet } what = kIsObject;
  int32_t reg = -1;     // object register; -1: there is none
  int32_t object = -1;  // index into Region's addresses
};

// One of what an iterator gives at once.
struct NextItem {
  Walked over = Walked::kNothing;
  Rep rep = Rep::kNone;  // kNone: a text of one character, or (of a list or tuple) any object
  int32_t raw = -1, obj = -1;
  int32_t type = -1;  // of the iterator: index into Region's addresses
};

struct Instr {
  Do what = Do::kStep;
  Rep rep = Rep::kNone, to = Rep::kNone;
  bool runs_code = true;  // the step may run code nothing is known of
  int32_t dst = -1, a = -1, b = -1, c = -1, imm = 0, n = 0;
  int32_t object = -1;  // index into Region's addresses; kBinary, kCall: of the function that does it, if it is called
  typed::Callee callee = typed::Callee::kNone;
  int32_t side = -1;                         // block that goes on where the guard fails, or the iterator ends, or -1: that leaves
  int32_t of_class = -1;                     // index into Region's addresses: the object in a is of that class, else on at `side`, if any
  typed::Real real = typed::Real::kNeither;  // kBinary of complex numbers
  Holder holder = Holder::kNone;             // kNext
  std::vector<NextItem> next;
  int32_t target = 0;             // kJump: the block
  std::vector<Promise> promises;  // kJump
  std::vector<int32_t> list;
  std::vector<int32_t> fills;    // kStep: object registers that it fills, beside dst
  std::vector<int32_t> objects;  // kCall that gives one of its operands: their object registers (-1: nobody sees it); c: the result's
  std::vector<int32_t> slots;    // kGuardWaiting, kWaitAt: 1 for each that is bound, else 0
  std::vector<Move> moves;
  std::vector<int32_t> drops;  // object registers, mostly null
  std::vector<int32_t> needs;  // unboxed registers that whoever goes on from here may look at, beside those that instructions read
  bool needs_all = false;
  bool asks = false;         // kJump: whether the run may go on has to be asked each time
  bool only_called = false;  // neither faster nor slower here than as a step
  bool advances = false;     // kStep: of an iterator, whose end leads to `side`
  bool computes = false;     // kStep: array ops, by Frame::compute
  bool settles = false;      // done natively, it needs no kGuardWorld behind it
};

// The bits of a register: of a complex number's real part, and of its imaginary one.
struct Constant {
  int64_t bits = 0, imag = 0;
};

// A program: a loop (block 0 is where the function begins) or a side trace.
struct Block {
  int32_t parent = -1;                    // block it hangs on; -1: a loop
  int32_t offset = 0;                     // of its registers, which each loop and its side traces have for themselves, in the file
  int32_t depth = 0;                      // blocks around it
  int32_t first_reg = 0;                  // registers before this one are its parent's
  int32_t guard = -1;                     // a side trace's: the number of the instruction that leads to it
  std::vector<int32_t> drops;             // object registers that die on the way to it, mostly null
  std::vector<int32_t> owns;              // object registers that hold a borrowed object until then
  std::vector<int32_t> nulls;             // object registers of its own
  std::vector<int32_t> holds;             // object registers that may hold something where it begins
  std::vector<Move> boxes;                // objects that are made on the way to it: of unboxed values (`from`), or of parts
  bool asks = false;                      // whether it may be entered has to be asked each time
  std::vector<Instr> instrs;              // what they are numbered by, in `number`, tells the machine where to go on
  int32_t number = 0;                     // of the first one; the others follow
  std::map<int32_t, Constant> constants;  // registers that hold the same bits all the time
  std::map<int32_t, int32_t> objects;     // registers that hold the same object all the time: index into Region's addresses
};

constexpr int32_t kDeepest = 32;

struct Region {
  std::vector<Block> blocks;     // parents before their children
  int32_t objects = 0;           // how many addresses it has of its own
  bool leaves_anywhere = false;  // for tests: where Frame::forced says
};

// Where generators have what hook/generators.h says.
struct GeneratorLayout {
  int32_t state = 0, created = 0, suspended = 0, executing = 0;  // a byte, and what it says; 0: this interpreter has it otherwise
  int32_t handled = 0, code = 0, function = 0, globals = 0, shown = 0, next = 0;  // pointers
  int32_t first = 0;
  int32_t count = 0;  // 32 bits
  int32_t slots = 0;
};

// Where the objects of the interpreter and of NumPy have what is looked at.
struct Layout {
  int32_t type = 8;       // of any object
  uint32_t immortal = 0;  // not 0: references are counted in 32 bits, and new ones not at all from this count on
  int32_t size = 0, list_items = 0, list_allocated = 0, tuple_items = 0;
  int32_t class_truth[3] = {};    // of a class written in Python: its functions that tell of its instances' truth; none: they are true
  int32_t list_least = 0;         // of fewer items a list that is popped from gives its memory back, however much it has
  int32_t free_floats_count = 0;  // how many there are, from kFreeFloats on; 0: none are kept there
  int32_t float_value = 0, complex_value = 0, numpy_double_value = 0, numpy_complex_value = 0;
  int32_t int_size = 0, int_digit = 0;  // of ints
  int32_t small_int_size = 0;           // the interpreter's own small ints stand so far from each other, around kZero; 0: they do not
  bool int_tagged = false;              // int_size holds sign and number of digits as CPython has them since 3.12
  int32_t range_start = -1, range_step = -1, range_length = -1, range_index = -1;  // -1: there is no such field; start < 0: unknown
  int32_t iterator_position = 0, iterator_sequence = 0;                            // of lists and tuples
  int32_t type_version = 0;                                                        // of a type
  int32_t place_type = 0, place_version = 0, place_slot = 0, place_index = 0,
          place_items = 0;                                                 // of what a step has found out about an attribute
  int32_t values = 0, values_first = 0, values_tag = 0;                    // of an instance: hook/attributes.h
  int32_t function_code = 0, function_globals = 0, function_defaults = 0;  // of a function
  int32_t cell_content = 0;                                                // of a cell: null where it is empty
  int32_t holder_number = 0, holder_inner = 0, holder_result = 0;          // of enumerate and zip
  int32_t tracked = 0;  // before any object that the collector may know: not 0 if it does. 0: unknown
  int32_t bytes_data = 0, bytearray_start = 0, numeric_items = 0, numeric_kind = 0, text_length = 0, ascii_data = 0;
  int32_t text_state = 0;
  uint32_t text_mask = 0, text_plain = 0;  // of its state: what a text of ASCII has there
  int32_t letter_size = 0;                 // texts of one ASCII character stand so far from each other, from kLetters on; 0: they do not
  int32_t data = 0, rank = 0, dims = 0, strides = 0, descr = 0, flags = 0;  // of an array
  int32_t dtype_number = 0, byteorder = 0;                                  // of its dtype
  int32_t aligned = 0, writeable = 0, warns = 0;                            // flags
  std::map<Rep, int32_t> numbers;                                           // of dtypes
  GeneratorLayout generator;
};

// What native code is given beside the registers (which the functions below are told by their place in the file). It returns the number of
// the instruction that is to be done by the machine, which goes on from there, or kElsewhere: a step it has called has left.
struct Frame {
  void* machine = nullptr;
  const volatile unsigned char* breaker = nullptr;  // not 0: something waits for the thread
  const bool* unsettled = nullptr;
  int32_t (*step)(Frame*, int32_t number) = nullptr;     // does one by its step: what came of it
  int32_t (*compute)(Frame*, int32_t number) = nullptr;  // the same of one that `computes`, and leaves where it has run code
  int32_t (*advance)(Frame*, int32_t number) = nullptr;  // the same of one that `advances`: kEnded, if there is no item
  void (*drop)(Frame*, int32_t reg) = nullptr;           // drops the reference in an object register; unsettled if code has run
  int32_t (*quiet)(Frame*, int32_t reg) = nullptr;       // drops the reference, if that runs no code: 1; else 0
  // A typed operator on two numbers (their bits, or the addresses of complex ones), by the code that its step uses: 1, and the result; 0:
  // the step is to be done.
  int32_t (*scalar)(Frame*, int32_t number, int64_t a, int64_t b, int64_t* out) = nullptr;
  int32_t (*holds)(Frame*, int32_t block) = nullptr;  // kGuardWorld, of a block with folded names or where code has run
  int32_t (*ends)(Frame*, int32_t reg) = nullptr;     // tells an iterator over a list or tuple that it has ended, if that runs no code: 1
  int32_t (*draw)(void* object, int32_t bound, double* out) = nullptr;                      // kDraw; 0: there is no such generator
  int32_t (*draw_bits)(void* object, int32_t bound, int64_t bits, int64_t* out) = nullptr;  // kDrawBits; 0: there are none
  int32_t (*is_quiet)(void* iterator) = nullptr;                                            // does it run no code?
  int32_t (*put)(Frame*, int32_t number) = nullptr;  // does a kPutItem, if that runs no code: 1; else 0
  // Does a kQuick, if that runs no code: 1; 2: it has, and finalisers may have run since; else 0.
  int32_t (*quick)(Frame*, int32_t number) = nullptr;
  int32_t (*enters)(Frame*, int32_t block) = nullptr;  // may the side trace be entered?
  int32_t (*leaves)(Frame*, int32_t left) = nullptr;   // kLeaveFrame: 1, if nobody has been shown the frame
  // A new reference, or null. bits: of a complex number, here and below: the address of both parts.
  void* (*box)(Frame*, int32_t rep, int64_t bits) = nullptr;
  // The number in an object (its address): 1; 0: it is no such number.
  int32_t (*unbox)(Frame*, int32_t rep, int64_t object, int64_t unused, int64_t* out) = nullptr;
  // Object register reg becomes a number of this kind: 1; 0: no memory.
  int32_t (*make)(Frame*, int32_t reg, int64_t rep, int64_t bits) = nullptr;
  // The next item of the range iterator in an object register: 1; 0: it has ended.
  int32_t (*next)(Frame*, int32_t reg, int64_t unused, int64_t unused2, int64_t* out) = nullptr;
  int32_t (*same)(Frame*, void* a, void* b) = nullptr;            // the same text?
  void* (*letter)(Frame*, void* text, int64_t at) = nullptr;      // a new reference, or null
  int32_t (*discard)(Frame*, int32_t n, int64_t made) = nullptr;  // drops n boxes nobody has seen; made: the address of the first one
  // Appends the object to the list (addresses), and drops (takes) a reference to it: 1; 0: no memory.
  int32_t (*append)(Frame*, int32_t takes, int64_t list, int64_t object) = nullptr;
  // Object register reg becomes the iterator over a list or tuple: as `quick`.
  int32_t (*iterate)(Frame*, int32_t reg, void* over, int32_t tuple) = nullptr;
  // For tests: the machine does this instruction, the first time that it comes in this turn of a run or a later one.
  int64_t forced = -1, forced_turn = 0;
  const void* const* addresses = nullptr;  // in the order of Address, then the region's own
  // Object register reg becomes the iterator over a range: 1; 0: the step is to be done.
  int32_t (*range)(Frame*, int32_t reg, int64_t start, int64_t stop, int64_t step) = nullptr;
  // Of each kind of number whose boxes are made again and again, and of iterators over ranges, lists and tuples, one that nobody has: the
  // next one.
  void* spare[8] = {};
  int32_t loaded[kDeepest] = {};  // by depth: the block whose constants are in the registers, or 0
  void* extra = nullptr;
};
constexpr int32_t kElsewhere = -1;
constexpr size_t kSpareIterator = 2, kSpareInt = 3, kSpareComplex = 4, kSpareListIterator = 5, kSpareTupleIterator = 6,
                 kSpareNumpyComplex = 7;
enum Came : int32_t { kNext, kLeft, kEnded };  // of a step: on to the next one; the run has left; there is no item
enum Address : int32_t {
  kArrayType,
  kRangeIteratorType,
  kSequenceIteratorType,
  kListType,
  kTupleType,
  kIntType,
  kFloatType,
  kComplexType,
  kNumpyDoubleType,
  kNumpyComplexType,
  kTrue,
  kFalse,
  kEnumerateType,
  kZipType,
  kCellType,
  kListIteratorType,
  kTupleIteratorType,
  kZero,        // the int
  kLetters,     // the text "\0"
  kFreeFloats,  // where the interpreter has the first float that nobody has any more
  kAddresses
};

union alignas(16) Register {
  void* o;
  int64_t i;
  double f;
  float s;
  double c[2];
};
using Function = int32_t (*)(Register* r, Frame* frame);

// The region as LLVM IR: one function, `symbol`. The text is the same for the same region in every process. "": it cannot be done.
std::string to_ir(const Region& region, const Layout& layout, const std::string& symbol);

}  // namespace dalsegno::native
