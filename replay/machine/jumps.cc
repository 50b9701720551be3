// Going from one program to another: loops closing, jumps into loop traces.
#include <algorithm>
#include <new>
#include <utility>

#include "replay/machine/rep_types.h"
#include "replay/machine/run.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

// The program with this number in the tree; null if there is none.
ProgramImpl* find_program(const ProgramImpl& from, int32_t number) {
  if (from.data().number == number) return const_cast<ProgramImpl*>(&from);
  if (!from.tree) return nullptr;
  for (const auto& p : *from.tree)
    if (p && p->trace().data.number == number) return static_cast<ProgramImpl*>(p.get());
  return nullptr;
}

bool same_shape(const Snapshot& a, const Snapshot& b) {
  if (a.frames.size() != b.frames.size()) return false;
  for (size_t i = 0; i < a.frames.size(); ++i)
    if (a.frames[i].locals.size() != b.frames[i].locals.size() || a.frames[i].stack.size() != b.frames[i].stack.size()) return false;
  return true;
}

bool is_type_of(Rep rep, PyObject* type) { return rep != Rep::kNone && reinterpret_cast<PyObject*>(type_of(rep)) == type; }

// Is what is moved of this type, or found out where it is unboxed on the way?
bool is_sure(const Move& move, PyObject* type) {
  return is_type_of(move.from.rep, type) && (!move.from.either() || (move.to.rep == move.from.rep && !move.to.either()));
}

// What can be said of a move before it is made.
bool possible(const Move& move) {
  if (move.to.rep == Rep::kNone || move.to.either()) return true;  // as an object, if need be
  return move.from.obj >= 0 || move.from.rep == move.to.rep;
}

class Planner {
 public:
  Planner(ProgramImpl& from, ProgramImpl& to, JumpPlan& plan) : from_(from), to_(to), plan_(plan) {}

  bool plan(const Snapshot& here) {
    const Snapshot& there = to_.data().entry;
    if (!same_shape(here, there)) return false;
    std::vector<ValueId> sources = slots_of(here), targets = slots_of(there);
    bound_.assign(to_.data().n_params, kNull);
    for (size_t i = 0; i < targets.size(); ++i)
      if (!slot(sources[i], targets[i])) return false;
    return std::find(bound_.begin(), bound_.end(), kNull) == bound_.end();
  }

 private:
  bool slot(ValueId source, ValueId target) {
    if (source == kNull || target == kNull) return source == target;
    if (target >= to_.data().n_params) {
      PyObject* expected = to_.live->objects[to_.data().ops[target].object];
      const Op& here = from_.data().ops[source];
      if (here.kind == OpKind::constant) return from_.live->objects[here.object] == expected;
      plan_.same.emplace_back(from_.locs[source], expected);
      return true;
    }
    if (bound_[target] != kNull) return bound_[target] == source;
    bound_[target] = source;
    Move move;
    move.from = from_.locs[source];
    move.to = to_.locs[target];
    bool stays = plan_.in_place && move.from.obj == move.to.obj && move.from.raw == move.to.raw;
    PyObject* type = to_.types[target].type;
    if (type && !stays && from_.types[source].type != type && !is_sure(move, type)) plan_.types.emplace_back(move.from, type);
    if (stays) {
      if (move.to.obj >= 0) stays_.push_back(move.to.obj);
      return true;
    }
    if (!possible(move)) return false;
    plan_.moves.push_back(move);
    return true;
  }

 public:
  std::vector<int32_t> stays_;  // object registers of values that are the target's already

 private:
  ProgramImpl& from_;
  ProgramImpl& to_;
  JumpPlan& plan_;
  std::vector<ValueId> bound_;
};

// A planted fault.
void swap_two_moves(std::vector<Move>& moves) {
  for (size_t i = 1; i < moves.size(); ++i) {
    Loc &one = moves[i - 1].from, &other = moves[i].from;
    if (one.rep != Rep::kNone && one.rep == other.rep && moves[i - 1].to.rep == moves[i].to.rep) return std::swap(one, other);
  }
}

struct Carried {
  Reg raw;
  PyObject* object;  // owned, or null
};

// The object, out of its register if the move takes it along.
PyObject* pick_object(const Move& move, Reg* r) {
  PyObject* o = r[move.from.obj].o;
  if (!move.takes) return Py_XNewRef(o);
  r[move.from.obj].o = nullptr;
  return o;
}

// One value out of its registers. False: it has another type than the target expects.
bool pick(const Move& move, Reg* r, Carried* out) {
  out->object = nullptr;
  const bool boxed = move.from.obj >= 0 && r[move.from.obj].o != nullptr;
  out->raw = {};
  if (move.to.rep == Rep::kNone || (move.to.either() && (boxed || move.from.rep != move.to.rep))) {
    if (!boxed && move.same >= 0) return true;
    out->object = boxed ? pick_object(move, r) : box(move.from.rep, r[move.from.raw]);
    if (!out->object && !boxed) throw std::bad_alloc();
    return out->object != nullptr;
  }
  if (move.from.rep == move.to.rep && !(move.from.either() && boxed)) {
    out->raw = r[move.from.raw];
  } else if (!boxed && typed::may_be_same(move.from.rep, move.to.rep)) {
    out->raw = r[move.from.raw];
    if (out->raw.i < 0) return false;
  } else if (!boxed || !unbox(move.to.rep, r[move.from.obj].o, &out->raw)) {
    return false;
  }
  if (move.to.obj >= 0 && boxed) out->object = pick_object(move, r);
  if (move.makes && !boxed && !(out->object = box(move.from.rep, out->raw))) throw std::bad_alloc();
  return true;
}

void put_back(const Move& move, Reg* r, PyObject* object) {
  if (move.takes && object != nullptr && r[move.from.obj].o == nullptr) {
    r[move.from.obj].o = object;
  } else {
    Py_XDECREF(object);
  }
}

// The usual loop.
inline void carry_quick(const JumpPlan& plan, Machine& m, Reg* r) {
  for (int32_t reg : plan.drop)
    if (PyObject* o = r[reg].o) {
      r[reg].o = nullptr;
      Py_DECREF(o);
    }
  for (const Copy& c : plan.copies) {
    const Reg carried = r[c.from];
    if (c.how == Copy::kTake) r[c.from].o = nullptr;
    if (c.how == Copy::kShare) Py_XINCREF(carried.o);
    r[c.to] = carried;
  }
  m.program = plan.target;
}

const Step* carry(const Step* s, JumpPlan& plan, Machine& m) {
  constexpr size_t kFew = 48;
  Carried few[kFew];
  std::vector<Carried> many(plan.moves.size() > kFew ? plan.moves.size() : 0);
  Carried* carried = many.empty() ? few : many.data();
  Reg* r = m.r;
  for (size_t i = 0; i < plan.moves.size(); ++i) {
    if (pick(plan.moves[i], r, &carried[i])) [[likely]]
      continue;
    for (size_t k = 0; k < i; ++k) put_back(plan.moves[k], r, carried[k].object);
    PyErr_Clear();
    return leave(m, s->exit);
  }
  for (size_t i = 0; i < plan.moves.size(); ++i)
    if (plan.moves[i].same >= 0 && !carried[i].object) carried[i].object = Py_XNewRef(carried[plan.moves[i].same].object);
  drop(plan.drop, r);
  if (!plan.in_place) {
    m.reserve(plan.target->n_regs);
    start_program(m, *plan.target);
    r = m.r;
  }
  m.program = plan.target;
  for (size_t i = 0; i < plan.moves.size(); ++i) {
    const Loc& to = plan.moves[i].to;
    if (to.raw >= 0) r[to.raw] = carried[i].raw;
    if (to.obj >= 0) r[to.obj].o = carried[i].object;
  }
  return plan.target->enter();
}

}  // namespace

// What would be dropped goes along with the last move from its register.
static void take_along(JumpPlan& plan) {
  for (auto move = plan.moves.rbegin(); move != plan.moves.rend(); ++move)
    move->takes = move->to.obj >= 0 && std::erase(plan.drop, move->from.obj) > 0;
}

// A number that goes to several places gets its object now: whatever is one object stays one.
static void share_boxes(std::vector<Move>& moves) {
  const auto lacks = [](const Move& move) { return move.same < 0 && move.from.may_lack_object() && move.to.obj >= 0; };
  for (size_t k = 0; k < moves.size(); ++k)
    for (size_t i = k + 1; lacks(moves[k]) && i < moves.size(); ++i) {
      Move& other = moves[i];
      if (!lacks(other) || other.from.raw != moves[k].from.raw || other.from.obj != moves[k].from.obj) continue;
      other.same = static_cast<int32_t>(k);
      moves[k].makes = true;
    }
}

// False: the move converts. (Where there is no object yet the target's register is null: what it held is dropped.)
bool copies_of(const Move& move, std::vector<Copy>& copies) {
  const Loc &from = move.from, &to = move.to;
  if (move.makes || move.same >= 0) return false;
  const auto how = move.takes ? Copy::kTake : Copy::kShare;
  const bool object = from.obj >= 0 && from.is_object, as_object = to.rep == Rep::kNone || (to.either() && from.rep != to.rep);
  if (as_object) {
    if (object) copies.push_back({from.obj, to.obj, how});
    return object;
  }
  if (from.rep != to.rep || (from.either() && !to.either())) return false;
  copies.push_back({from.raw, to.raw, Copy::kPart});
  if (to.obj >= 0 && from.obj >= 0) copies.push_back({from.obj, to.obj, how});
  return true;
}

// The order in which nothing is overwritten or taken that is moved later; false: there is none.
static bool put_in_order(std::vector<Copy>& copies) {
  for (size_t i = 0; i < copies.size(); ++i) {
    size_t free = i;
    auto overwrites = [&](const Copy& c) {
      return std::any_of(copies.begin() + static_cast<int64_t>(i), copies.end(), [&](const Copy& other) {
        return &other != &c && (other.from == c.to || (c.how == Copy::kTake && other.from == c.from));
      });
    };
    while (free < copies.size() && overwrites(copies[free])) ++free;
    if (free == copies.size()) return false;
    std::swap(copies[i], copies[free]);
  }
  return true;
}

namespace {
const Step* jump_quickly(const Step* s, Reg* r, Machine& m) {
  const JumpPlan& plan = *s->jump;
  if (*m.breaker != 0 || m.unsettled || !plan.target->world_holds()) [[unlikely]]
    return step_jump(s, r, m);
  count_steps(plan.steps);
  carry_quick(plan, m, r);
  return plan.target->enter();
}
}  // namespace

static JumpPlan plan_of_jump(ProgramImpl& from) {
  const Op& op = from.data().ops.back();
  JumpPlan plan;
  plan.target = find_program(from, op.imm);
  if (!plan.target) return plan;
  plan.in_place = from.hangs_on(plan.target);
  Planner planner(from, *plan.target, plan);
  plan.impossible = !planner.plan(from.data().snapshot(op.snapshot));
  if (plan.impossible) return plan;
  if (planted(Fault::lost_loop_variable)) swap_two_moves(plan.moves);
  // What is carried is picked with a new reference, so all that does not stay is dropped.
  for (int32_t reg : from.live_of(from.plans[from.steps.back().exit]))
    if (std::find(planner.stays_.begin(), planner.stays_.end(), reg) == planner.stays_.end()) plan.drop.push_back(reg);
  take_along(plan);
  share_boxes(plan.moves);
  plan.quick = plan.in_place && plan.same.empty() && plan.types.empty() &&
               std::all_of(plan.moves.begin(), plan.moves.end(), [&](const Move& move) { return copies_of(move, plan.copies); });
  plan.quick = plan.quick && put_in_order(plan.copies);
  plan.steps = from.steps.size();
  return plan;
}

// Where memory ends on the way there is no plan, not half of one.
void prepare_jump(ProgramImpl& from, JumpPlan& plan) {
  plan = plan_of_jump(from);
  if (plan.quick) from.steps.back().fn = jump_quickly, from.steps.back().jump = &plan;
}

bool has_type_unboxed(const Loc& loc, PyObject* type) { return loc.either() && is_type_of(loc.rep, type); }

bool is_of_type(PyObject* o, PyObject* type) {
  if (!o) return false;
  return type == quiet_mark() ? hook::quiet_iterator(o) : reinterpret_cast<PyObject*>(Py_TYPE(o)) == type;
}

bool keeps_promises(const JumpPlan& plan, const Reg* r) {
  for (const auto& [loc, object] : plan.same)
    if (loc.obj < 0 || r[loc.obj].o != object) return false;
  for (const auto& [loc, type] : plan.types)
    if (loc.obj < 0 || !(is_of_type(r[loc.obj].o, type) || (!r[loc.obj].o && has_type_unboxed(loc, type)))) return false;
  return true;
}

// imm: index of the jump plan; link: snapshot for signal handlers to see, as at every back edge.
const Step* step_jump(const Step* s, Reg* r, Machine& m) {
  ProgramImpl& from = *m.program;
  JumpPlan& plan = from.jumps[s->imm];
  count_steps(static_cast<uint64_t>(s - from.steps.data()) + 1);
  if (!plan.target) prepare_jump(from, plan);
  if (!plan.target || plan.impossible) return leave(m, s->exit);
  if (const Step * next; (*m.breaker != 0 || m.unsettled) && !settle(s, m, &next)) [[unlikely]]
    return next;
  if (!plan.target->world_holds()) return leave(m, s->exit);
  if (!keeps_promises(plan, r)) return leave(m, s->exit);
  return carry(s, plan, m);
}

void load_constants(Machine& m, const ProgramImpl& program) {
  for (const ConstReg& c : program.consts) m.r[c.reg] = c.value;
}

void start_program(Machine& m, ProgramImpl& program) {
  m.program = &program;
  std::fill(m.r + program.first_reg, m.r + program.n_regs, Reg{});
  load_constants(m, program);
}

}  // namespace dalsegno::replay
