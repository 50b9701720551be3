// A lowered trace. Internal to the replay machine: machine.h is its interface, and run.h has the state of a run.
//
// Registers. The programs of a group (a root or loop trace and the side traces hanging on it) share one register file: a side
// trace's registers come after its parent's, and it uses the parent's registers for its parameters, so that taking a side trace moves
// nothing. A value has an object register (an owned reference; borrowed for constants), a raw one, or both. A value that is born
// unboxed keeps the object it is boxed to, if ever, in its object register, which is null until then: one box per value.
// Object registers that are not live are null.
#pragma once
#include <Python.h>

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "replay/kernels/native_code.h"
#include "replay/machine/live_log.h"
#include "replay/machine/machine.h"
#include "replay/machine/recursion.h"
#include "replay/machine/step.h"
#include "replay/segment/refusals.h"
#include "replay/typed/typed_trace.h"
#include "trace/walk.h"

namespace dalsegno::replay {

using typed::slots_of;

struct LoopPlan;  // loop_plan.h

// Where a value lives.
struct Loc {
  int32_t obj = -1;
  int32_t raw = -1;
  Rep rep = Rep::kNone;   // of raw
  bool owned = false;     // the object register owns its reference
  int32_t since = -1;     // op from which on raw is valid (-1: always); before it, where there is no object
  bool is_object = true;  // the object register is never null while the value lives
  bool borrowed = false;  // another object holds it (typed::ValueForm::borrowed): whoever keeps it takes a reference

  static constexpr int32_t kNever = INT32_MAX;
  // What is carried along and no op looks at: an object of any type, or else the unboxed part.
  bool either() const { return since == kNever; }
  // Is it a number of which there may be no object yet?
  bool may_lack_object() const { return raw >= 0 && (obj < 0 || !is_object); }
  bool raw_after(int32_t op) const { return raw >= 0 && since < op; }
};

// One part of a view's index, in unboxed registers.
struct IndexPart {
  typed::IndexPart::Kind kind = typed::IndexPart::kPosition;
  std::array<int32_t, 3> regs{-1, -1, -1};  // a position, or start, stop and step; -1: None
};

// What exists as its parts until somebody needs the object: an index tuple, a slice, a list, a row or view of an array, or a range. It is
// built into register `reg`, which is null until then.
struct Virtual {
  enum Kind : uint8_t { kTuple, kList, kRow, kRange, kSlice, kView, kBound, kDelayed };
  int32_t reg = -1;
  Kind kind = kTuple;
  // A tuple's or list's items; or an array, and one after the other the positions that lead to the row; or range()'s or slice()'s
  // arguments; or the array that the view is of; or a method and what it is bound to.
  std::vector<Loc> parts;
  std::vector<const Virtual*> inner;  // a tuple's: the part is virtual itself; null: it is not
  // Views. Where the elements lie stands in unboxed registers from `block` on: the first one's address, the extents, the strides.
  std::vector<IndexPart> index;
  ArrayFacts array = kNoFacts;  // what the array was recorded as,
  ArrayFacts view = kNoFacts;   // and what the view is
  int32_t block = -1;
  // kDelayed: made by that step, of operands that registers of its own hold, and of inner[0], if there is one.
  const Step* step = nullptr;
};

// A generator that a builtin uses up without it.
struct UsedUp {
  const Virtual* generator = nullptr;
  int32_t code = -1, closure = -1, iterator = -1;  // object registers; there may be no closure
  PyObject* globals = nullptr;                     // borrowed from the trace
};

// What an iterator gives at once: one item, or several.
struct NextItem {
  Walked over = Walked::kNothing;
  Rep rep = Rep::kNone;  // kNone: an object
  int32_t raw = -1;      // registers; -1: nobody asks
  int32_t obj = -1;      // of lists, tuples and texts
};
struct NextPlan {
  Holder holder = Holder::kNone;
  bool objects = false;  // some items may be of any type
  int32_t n = 0;
  NextItem items[kMostWalked];
};

// One place to leave from, with what is live there. Several plans may belong to one Exit.
struct ExitPlan {
  int32_t exit = -1;  // index into exits()
  int32_t op = -1;
  int32_t snapshot = -1;
  int32_t at = 0;                        // number of steps done by then
  int32_t live_at = -1;                  // the point in the live log that `live` is to be taken from, or -1: it has been (live_of)
  std::vector<int32_t> live;             // object registers that own a reference (or are null)
  std::vector<const Virtual*> virtuals;  // that slots hold here: built first
  std::vector<int32_t> pending;          // array ops that wait here: done first, one after the other
  // for the side trace attached, made when it is first taken
  const Program* prepared = nullptr;
  std::vector<int32_t> drop;
  std::vector<int32_t> own;  // registers of borrowed objects that it keeps
  std::vector<Loc> box;      // values of which the side trace does not know yet whether they are unboxed
};

// An operand of an array op that may have no object yet: it is made before NumPy does the op.
struct Lacking {
  const Virtual* what = nullptr;  // or else
  Loc number;
};

// Array ops that are done together.
struct Group {
  std::vector<int32_t> ops;
  std::vector<std::vector<int32_t>> dead_after;  // per op: registers of this group that die after it when ops run one by one
  std::vector<int32_t> inputs;                   // object registers
  std::vector<ArrayFacts> facts;                 // of array inputs; rank -1 for others
  std::vector<int32_t> outputs;                  // object registers
  int32_t runner = -1;                           // index into segments(); of a part: into part_runners
  int32_t fused = -1;                            // index into part_runners: the same, and the operator in place that ends it; or -1
  int32_t after = -1;                            // plan of the op that needed the values, or -1
  int32_t reduced = -1;                          // index into reduced_groups: it may have been done while it was reduced
  int32_t sink = -1;                             // op that ends it by writing into an array: an operator in place, or set_item
  std::shared_ptr<const LoopPlan> loops;         // how NumPy's inner loops do all of it, where it is small; or null
  bool unread = false;  // what only variables hold is not made: the function returns next, and nobody can look at them
  // The same ops in parts, where at once they would take more memory than eager does: one after the other, and what has died is dropped in
  // between. [1]: for arrays so large that NumPy computes into dying ones. (parts.cc)
  std::vector<Group> parts[2];
  int64_t measured_at = 0;  // largest input, in bytes, when
  int64_t before = 0;       // there were so many bytes of arrays before it,
  int64_t made = 0;         // and in its outputs,
  int64_t kept = 0;         // and in those that are arrays where it is done without objects
  int measures = 0;
  Refusals refusals;  // to try it without objects
};

struct Move {
  Loc from;
  Loc to;
  bool takes = false;  // the reference goes along: nothing else is left with the object register it comes from
  bool makes = false;  // the number gets an object on the way, if it has none: others have the same one
  int32_t same = -1;   // the move that makes the object of the same number, if there is none yet: whatever is one object stays one
};
// A register moved within one file.
struct Copy {
  enum How : uint8_t {
    kPart,  // an unboxed part
    kTake,  // an object, or null
    kShare  // a new reference of an object, or null
  };
  int32_t from, to;
  How how;
};
struct JumpPlan {
  class ProgramImpl* target = nullptr;
  bool impossible = false;
  bool in_place = false;  // the target is the program itself or one it hangs on: its constants are there already
  std::vector<Move> moves;
  bool quick = false;                            // in place, and `copies` are all there is to move
  std::vector<Copy> copies;                      // in this order
  uint64_t steps = 0;                            // of a whole turn
  std::vector<std::pair<Loc, PyObject*>> same;   // values that must be these objects
  std::vector<std::pair<Loc, PyObject*>> types;  // values that must have these types
  std::vector<int32_t> drop;
};

// One argument of a call of a tree: where it stands before, and as a parameter.
struct Handover {
  Loc from;            // `raw` only where it is valid
  bool takes = false;  // nothing but the call holds it: the reference goes along, and it may come without an object
  int32_t to_obj = -1;
  int32_t to_raw = -1;  // where it may be handed over unboxed, or -1
};
// A step that calls a jitted function.
struct CallSite {
  int32_t callee = -1;  // object register
  uint64_t target = 0;  // ProgramImpl::id of the entry that the handovers' `to` is about
  std::vector<Handover> arguments;
  Loc result;
};

// Folded globals of one dict.
struct FoldedGuards {
  hook::DictVersion version;
  bool checked;                                        // since the trace was lowered: the globals may have changed after the recording
  std::vector<std::pair<PyObject*, PyObject*>> names;  // name, value (null: absent); borrowed
};

// A place in the trace that reads or writes an attribute of an instance.
struct AttributePlace {
  dalsegno_attribute attribute;
  dalsegno_attribute_cache cache;
};

// A look-up in a dict or set: op `at` has put where it found the key into the register and the one behind it (hook/lookups.h).
struct KnownLookup {
  ValueId container, key, at;
  int32_t reg;
};

// Stands where a type would (ProgramImpl::types) for iterators that are quiet (hook::quiet_iterator), which none ever ceases to be.
inline PyObject* quiet_mark() { return Py_Ellipsis; }

struct ConstReg {
  int32_t reg;
  Reg value;
  bool object = false;
};

// A loop's native code, asked for.
class ProgramImpl;
// Where native code finds what has a number: the step, the block it belongs to, how many blocks are around that, and where its registers
// begin.
struct NativePlace {
  const Step* step;
  int32_t block, depth, offset;
};

struct Native {
  std::shared_ptr<NativeCode> code;                                // null: there cannot be any
  std::vector<ProgramImpl*> programs;                              // per block of the region
  std::vector<ProgramImpl*> worlds;                                // those with folded names
  mutable std::vector<std::pair<const uint64_t*, uint64_t>> held;  // versions of their dicts as they were when all worlds held last
  std::vector<int32_t> offsets;                                    // of their registers: loops that lead to one another have each their own
  std::vector<ExitPlan*> plans;                                    // by which they are reached
  std::vector<const void*> addresses;                              // what the code refers to
  int32_t n_regs = 0;
  size_t most = 0;                   // steps it may have
  size_t seen = 0;                   // programs of the tree when it was last asked whether more could be part of it
  int32_t left = 0, often = 16;      // times it has left to a side trace that is not part of it; so many are enough to grow
  int32_t times = 0;                 // it has grown
  std::unique_ptr<Native> next;      // compiled with them
  std::unique_ptr<Native> previous;  // may be running
  std::vector<NativePlace> places;   // by number, once the code is there
  std::vector<Step> alone;           // of all programs, to be done one at a time
  Step entry;                        // runs it

  size_t n_steps() const;
};

// A snapshot, and of each of its frames, outermost first, what tells its states apart and where its instruction stands.
struct Framing {
  Snapshot snapshot;
  std::vector<int32_t> states;     // indices into Snapshots::frames
  std::vector<int32_t> executing;  // hook::executing_offset()
};

class ProgramImpl final : public Program {
 public:
  const LiveTrace& trace() const override { return *live; }
  std::vector<Exit>& exits() override { return exit_records; }
  const std::vector<std::unique_ptr<SegmentRunner>>& segments() const override { return runners; }

  std::vector<SegmentInfo> segment_ops() const override;
  std::optional<NativeInfo> native_info() const override;  // native_region.cc
  bool recurses() const override { return recursion && recursion->has_code(); }
  int traverse(visitproc visit, void* arg) const override;

  const Trace& data() const { return live->data; }
  // The instruction that frames stand at while the step with this plan runs, or -1: as in its snapshot.
  int32_t at_of(int32_t plan) const { return plan < 0 ? -1 : data().ops[plans[plan].op].at; }
  // Have the names folded into the trace their values?
  bool world_holds() { return seen_changes == hook::g_folded_changes || folded.empty() || folded_hold(); }
  // True if `other` is this program or one it hangs on.
  bool hangs_on(const ProgramImpl* other) const;

  bool folded_hold();

  // Of a plan of this program. Written out when it is first asked for: few exits are ever taken.
  const std::vector<int32_t>& live_of(ExitPlan& plan) {
    if (plan.live_at >= 0) plan.live = live_log.at(plan.live_at);
    plan.live_at = -1;
    return plan.live;
  }

  // Where a jump to it goes.
  const Step* enter() { return start ? start : warm_start(); }
  const Step* warm_start();  // native.cc

  // The frames of a snapshot, built from their deltas: kept where they are asked for, as they will be again, or else, where much is kept
  // already, in `room`.
  const Framing& framing(int32_t i, Framing& room);

  std::unique_ptr<LiveTrace> live;
  const std::vector<std::unique_ptr<Program>>* tree = nullptr;
  ProgramImpl* parent = nullptr;  // side traces
  std::vector<Step> steps;
  std::vector<Step> array_steps;  // array ops done one by one; array_step[op] is its index
  std::vector<int32_t> array_step;
  std::vector<std::vector<Lacking>> array_lacks;  // per array step
  std::vector<Loc> locs;                          // per value
  // Per value: a type that was proven and that no object changes, and by which op. At -1 it holds at the entry: whoever jumps to the loop
  // has proven it.
  struct Proven {
    PyObject* type = nullptr;  // borrowed
    int32_t since = -1;
  };
  std::vector<Proven> types;
  std::vector<Exit> exit_records;
  const uint64_t id = next_id();                      // of all programs there have been
  std::vector<std::unique_ptr<const Framing>> built;  // snapshots asked for
  size_t built_slots = 0;
  std::vector<bool> exit_overflow;  // per exit: an int did not fit, so a side trace keeps ints boxed
  std::vector<bool> exit_refused;   // per exit: a typed op refused its operands, so a side trace begins with objects
  std::vector<ExitPlan> plans;
  LiveLog live_log;
  std::vector<Group> groups;
  std::vector<std::unique_ptr<SegmentRunner>> runners;
  std::vector<std::unique_ptr<SegmentRunner>> part_runners;
  int64_t most_bytes = 0;  // of arrays at once, where groups were measured
  std::vector<std::shared_ptr<struct ReducedGroup>> reduced_groups;
  std::vector<JumpPlan> jumps;
  std::vector<CallSite> calls;
  std::vector<FoldedGuards> folded;
  uint64_t seen_changes = UINT64_MAX;  // of all folded names, when these were looked at
  std::vector<PyCodeObject*> codes;    // whose frames stand in snapshots; borrowed from the trace
  std::vector<ConstReg> consts;
  std::deque<std::vector<int32_t>> lists;  // what Step::list points into
  std::deque<AttributePlace> attributes;
  std::vector<KnownLookup> lookups;
  std::deque<NextPlan> nexts;
  std::deque<Virtual> virtuals;
  std::deque<Step> delayed;  // steps of virtuals
  std::deque<UsedUp> used_up;
  std::vector<int32_t> object_regs;  // own ones that own references
  const Step* start = nullptr;       // jumps go there; null: steps.data(), and the loop may yet get native code
  std::unique_ptr<Native> native;
  std::unique_ptr<Recursion> recursion;  // entries: calls of themselves (recursion.cc)
  int32_t turns = 0;                     // jumps to it, as long as `native` is null
  bool kept_asked = false;               // whether there is native code of an earlier process
  bool keeps_code = true;                // in the store
  int32_t first_reg = 0;                 // own registers: [first_reg, n_regs)
  int32_t n_regs = 0;
  bool box_ints = false;              // ints are not unboxed here: one was too large
  static inline int32_t deepest = 1;  // frames that any program so far is of, at most (with C code that counts between any two)
  std::vector<ValueId> params;        // root: the parameters that are given, in order

 private:
  static uint64_t next_id();
};

}  // namespace dalsegno::replay
