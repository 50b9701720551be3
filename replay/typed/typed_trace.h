// The typed trace: a trace, and for each value how it is represented, for each op how it is done. Plain data: no Python.h, no steps, no
// registers. It is made once a trace (infer), checked (verify) and can be printed (print; the text is the same for the same trace and
// the same knowledge, in every process). The replay machine's steps are one back end of it (replay/lower).
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "replay/typed/calls.h"
#include "replay/typed/rep.h"
#include "trace/trace.h"

namespace dalsegno::typed {

// The types that decide representations and forms. All of them are final for a value: an object never changes from or to one of these.
enum class Type : uint8_t {
  kOther,
  kInt,
  kBool,
  kFloat,
  kComplex,
  kNpBool,
  kNpInt32,
  kNpInt64,
  kNpFloat32,
  kNpFloat64,
  kNpInt8,
  kNpUint8,
  kNpInt16,
  kNpUint16,
  kNpUint32,
  kNpUint64,
  kNpComplex128,
  kRangeIterator,
  kListIterator,
  kTupleIterator,
  kList,
  kTuple,
  kText,
  kBytes,
  kBytearray,
  kNumericArray,  // array.array
  kCount
};
Rep rep_of_type(Type type);
Type type_of_rep(Rep rep);

// What is known of an object that the trace refers to. The caller fills this table from the live objects.
struct ObjectFacts {
  Type names = Type::kOther;  // the object is this type itself (guard_type's)
  Type type = Type::kOther;   // its exact type
  bool number = false;        // a number of Python's or NumPy's, subclasses included
  bool unboxes = false;       // its value fits in a register: it is in `bits`, as bits_of() says (of a complex number: not)
  int64_t bits = 0;
  bool wraps = false;     // an int that does not: `bits` is what it is modulo 2**64
  bool natural = false;   // of them one below 2**64, and not negative
  bool power_64 = false;  // of them 2**64
  Callee callee = Callee::kNone;
  std::vector<int64_t> positions;  // a tuple of ints, each fitting in a register; empty: anything else
  bool none = false, ellipsis = false;
  ArrayFn ufunc = ArrayFn::none;  // it is NumPy's ufunc
  bool reduces = false;           // it is ufunc.reduce
  int32_t uses_up = 0;            // of a builtin that uses up what it is given (sum, any, str.join ...): which operand that is
  // The names of a call's arguments, of which this is the only one.
  bool names_out = false, names_ddof = false;
};

// How an op is done.
enum class Mode : uint8_t {
  kPython,    // on objects, as the interpreter does it
  kTyped,     // on unboxed operands: `typed`
  kAlias,     // nothing to do: the result is the operand
  kFixed,     // the result is known: an unboxed number is never None
  kIndex,     // a subscript by an unboxed int
  kRange,     // the next item of a range, unboxed, where one is expected, and where none is
  kElement,   // an element of an array, read or written unboxed; or the next one of an array's iterator. The array is checked each time
  kItem,      // an item of an exact list or tuple by an unboxed index, or the next one of its iterator: as an object and, where a guard on
              // its type follows, unboxed too, and that guard holds. Or an item stored into an exact list, appended to it or popped
  kLength,    // len() of an object of a plain type, unboxed
  kDraw,      // the next number of one of the standard library's random generators, unboxed
  kText,      // texts: compared, or asked what they are (is_text_test), with an unboxed result, and a character by an unboxed index
  kByte,      // an item of bytes, a bytearray or an array.array by an unboxed index, read or written unboxed
  kNext,      // iter_next: of what its immediate says (trace/walk.h): the item, or the items of the tuple that is taken apart behind it,
              // which is virtual. What is not as it says leaves before the instruction
  kPart,      // the taking apart: nothing to do, the items have come already
  kIterator,  // a range's, made from the parts of a range that is virtual
  kVirtual,   // an index tuple, or a row of an array (a[i]), that nothing but subscripts take, or a range that is iterated over at once: it
              // exists as its parts, and is built where the run leaves, or code runs that could see it, while a slot holds it
              // (replay/typed/virtual.h)
  kView,      // a view of an array by slices, positions and new axes: virtual as kVirtual is; or a store through one
  kProduct,   // the product of two vectors, unboxed
  kReduction,  // the sum of an array, its largest or least element, where that is, its mean or norm, unboxed
  kGather,     // an array of one dimension by one of positions: a new array. What is out of bounds leaves before the instruction
  kDelayed,  // a generator expression's function, or its generator, that a builtin uses up at once: not made, unless that builtin does not
             // know how to do without, or the run leaves
  kPiece,    // of a list, tuple, text or bytes, from one unboxed position to another: the slice is virtual as kView's
  kLookup,   // of a plain key in a dict or set, with the guard before it that it is quiet: `in`, d[k], d.get(k), d[k] = v, s.add(k).
             // What is given is unboxed, too, where a guard on its type follows, and that guard holds
  kHeap,     // heapq.heappush() or heappop(), of numbers, texts and tuples of such; anything else refuses. What is popped is as an item
  kAttribute,  // of an instance that keeps it itself, the same; or one that is set
};
const char* mode_name(Mode mode);

struct OpForm {
  Mode mode = Mode::kPython;
  Operator typed;                 // kTyped
  Callee callee = Callee::kNone;  // kTyped calls
  ArrayFn fn = ArrayFn::none;     // of them kUfunc
  uint32_t effects = kNoEffect;   // what the op may have, done so: Effect. A typed op leaves before it would warn or raise
  bool of_tuple = false;          // kItem: of a tuple, not of a list
  int32_t facts = -1;             // kVirtual rows: the array's, index into Trace::facts
  ArrayFacts view = kNoFacts;     // kView, kGather: what the result is; kProduct, kReduction: what the operands are
  bool operator==(const OpForm&) const = default;
};

struct ValueForm {
  Rep rep = Rep::kNone;
  int32_t since = -1;      // op from which on the unboxed part is known; -1: always
  bool born_raw = false;   // computed unboxed: an object only where somebody asks for one
  bool wants_raw = false;  // somebody uses the unboxed part
  bool wants_obj = false;  // somebody uses the object
  bool hoisted = false;    // a loop's parameter that comes in unboxed: its guard_type is done at the jump
  bool borrowed = false;   // kItem, kAttribute: no reference is held, as nothing before its release can make its container drop it
  bool passing = false;    // computed unboxed, taken by one op and gone with it: nobody ever sees its object
  bool operator==(const ValueForm&) const = default;
};

// What is known before inference begins.
struct Knowledge {
  std::vector<ObjectFacts> objects;  // per object of the trace
  std::vector<Rep> params;           // a side trace's parameters that come unboxed from its parent; kNone or missing: as objects
  bool box_ints = false;             // ints stay objects here: one was too large for a register
  bool python_first = false;         // a side trace's first instruction is done on objects: the parent's typed op refused its operands
};

struct TypedTrace {
  const Trace* trace = nullptr;  // outlives this
  Knowledge known;
  std::vector<ValueForm> values;  // per op of the trace
  std::vector<OpForm> ops;        // per op of the trace

  const ValueId* inputs_of(const Op& op) const { return trace->inputs_of(op); }
  // An operand's representation as operators may use it. (What is modular is for those that know of it.)
  Rep rep_in_ops(ValueId v) const {
    const Rep rep = values[v].rep;
    if (is_modular(rep)) return Rep::kNone;
    return rep == Rep::kInt && known.box_ints ? Rep::kNone : rep;
  }
};

// `trace` has been verified, and known.objects has a row for each of its objects.
TypedTrace infer(const Trace& trace, const Knowledge& known);
// "" or what is wrong: forms that contradict each other or the trace.
std::string verify(const TypedTrace& typed);
// One op a line, after the representations the anchor's slots have.
std::string print(const TypedTrace& typed);
// Is v among its inputs?
bool takes(const Trace& trace, const Op& op, ValueId v);
// What is unboxed is a number, and so is what is not owned: its last reference drops nothing else.
bool is_number(const TypedTrace& typed, ValueId v);
// Nothing but one stack slot holds v, and op i takes it from there.
bool dies_behind(const Trace& trace, ValueId v, ValueId i);
// Does the call_tree i hand its input k over for good?
bool hands_over(const TypedTrace& typed, ValueId i, int32_t k);
// Parameters and results of calls of trees may come unboxed, although they are not born so: without an object the unboxed part is valid
// from the first.
bool may_lack_object(const TypedTrace& typed, ValueId v);
inline constexpr int32_t kMaxElementRank = 4;
// Which element of an array an op reads or writes.
struct Element {
  ValueId array = kNull;  // not a row that is virtual: the array it is a row of
  int32_t facts = -1;     // the array's, index into Trace::facts
  int32_t rank = 0;
  std::array<ValueId, kMaxElementRank> at{};        // the indices, or kNull where it is a constant tuple's:
  std::array<int64_t, kMaxElementRank> constant{};  // this position
  ValueId tuple = kNull;                            // the index, where it is a tuple built in the trace
  ValueId stored = kNull;                           // set_item: what is stored
};
// a[i], a[i, j] with a tuple built in the trace or a constant one, a[i][j] where a[i] is virtual, a.item(i); not the next one of an
// iterator.
std::optional<Element> element_of(const TypedTrace& typed, const Op& op);
// One part of the index of a view. An int is unboxed in `at` or, where that is kNull, `constant`.
struct IndexPart {
  enum Kind : uint8_t { kPosition, kSlice, kNewAxis, kEllipsis };
  Kind kind = kPosition;
  std::array<ValueId, 3> at{kNull, kNull, kNull};  // a position, or start, stop and step
  std::array<int64_t, 3> constant{};
  std::array<bool, 3> given{};  // else None stands there
  bool operator==(const IndexPart&) const = default;
};
inline constexpr int32_t kMaxViewRank = 4;
// The parts of a get_item's or set_item's index, if all of them are known to be such parts: then it is basic indexing.
std::optional<std::vector<IndexPart>> view_index_of(const TypedTrace& typed, const Op& op);
// Axes that the index leaves of an array of `rank`; -1: the index does not suit it.
int32_t rank_of_view(const std::vector<IndexPart>& index, int32_t rank);
// A ufunc that computes into an array that is there: an operator in place, or a call with out=. `fn` is none: it is neither.
struct Into {
  ArrayFn fn = ArrayFn::none;
  ValueId target = kNull;
  const ValueId* operands = nullptr;
  int32_t n = 0;
};
Into into_of(const TypedTrace& typed, const Op& op);
// Of a call that finds the spread of all elements and has `ddof` besides, a constant that is not negative: that.
std::optional<int64_t> ddof_of(const TypedTrace& typed, const Op& op);
// Which item of a list or tuple an op of mode kItem reads or writes.
struct Item {
  ValueId container = kNull;  // or the iterator
  ValueId index = kNull;      // kNull: the iterator's next, or the list's last
  ValueId stored = kNull;     // what is stored or appended
};
Item item_of(const TypedTrace& typed, const Op& op);
// The values that the iter_next i gives, of what Walk says: itself, or the items that its tuple is taken apart into. {}: the tuple is
// wanted.
std::vector<ValueId> walked_by(const Trace& trace, ValueId i);
// All slots of a snapshot in order: of each frame, outermost first, function, locals, stack.
std::vector<ValueId> slots_of(const Snapshot& snapshot);

}  // namespace dalsegno::typed
