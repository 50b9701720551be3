// What a loop's program and its side traces are to the generator of native code (replay/native).
#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <span>

#include "replay/machine/loop_plan.h"
#include "replay/machine/native.h"
#include "replay/machine/scalars.h"
#include "trace/recorder/walks.h"

namespace dalsegno::replay {
namespace {

bool knows_binary(BinaryOp op, Rep rep) {
  if (rep == Rep::kInt || typed::is_modular(rep)) return true;
  if (typed::is_numpy_integer(rep) && typed::size_of_integer(rep) < 8) return true;
  if (rep == Rep::kFloat || typed::is_pair(rep) || rep == Rep::kNpFloat32 || rep == Rep::kNpFloat64) return true;
  return rep == Rep::kNpInt64 && op != BinaryOp::lshift;
}

// (uint64 among them is no number of 64 bits with a sign.)
bool takes_narrow(typed::Callee callee, Rep rep) {
  using typed::Callee;
  if (rep == Rep::kNpUint64) return false;
  return callee == Callee::kMin || callee == Callee::kMax || callee == Callee::kInt;
}

// One text that may have to be made at most: then nothing else can fail behind it.
bool gives_natively(const NextPlan& plan) {
  int texts = 0;
  for (int32_t k = 0; k < plan.n; ++k) {
    const NextItem& item = plan.items[k];
    if (item.over == Walked::kRange && !hook::g_range_known) return false;
    const bool any = item.rep == Rep::kNone && native_layout().tracked != 0;
    if ((item.over == Walked::kList || item.over == Walked::kTuple) && !any && !native::reads_number(item.rep)) return false;
    texts += item.over == Walked::kText || (item.over == Walked::kAscii && native_layout().letter_size == 0);
  }
  return texts <= 1;
}

// Steps whose operands are of few bits, or that ask for more than the generator knows, are done by their own functions.
native::Do known(const Step& s) {
  using native::Do;
  const bool narrow = typed::is_numpy_integer(s.rep) && s.rep != Rep::kNpInt64;
  switch (s.does) {
    case Do::kBinary:
      return knows_binary(static_cast<BinaryOp>(s.imm), s.rep) ? s.does : Do::kStep;
    case Do::kUnary:
      return narrow && typed::size_of_integer(s.rep) == 8 ? Do::kStep : s.does;
    case Do::kCall:
      return narrow && !takes_narrow(static_cast<typed::Callee>(s.other), s.rep) ? Do::kStep : s.does;
    case Do::kAppend:
      return s.rep == Rep::kNone || native::reads_number(s.rep) ? s.does : Do::kStep;
    case Do::kTakeItem:
    case Do::kNextItem:
    case Do::kPop:
      return s.rep == Rep::kNone || native::reads_number(s.rep) ? s.does : Do::kStep;
    case Do::kAttribute:
      return s.imm != native::kUnknown && (s.rep == Rep::kNone || native::reads_number(s.rep)) ? s.does : Do::kQuick;
    case Do::kSetAttribute:
      return s.imm != native::kUnknown ? s.does : Do::kQuick;
    case Do::kGuardWaiting:
    case Do::kTakeSlot:
    case Do::kBeginToRun:
      return native_layout().generator.state ? s.does : Do::kQuick;
    case Do::kWaitAt:
      return native_layout().generator.state ? s.does : Do::kStep;
    case Do::kNext:
      return gives_natively(*s.next) ? s.does : Do::kStep;
    case Do::kRangeIterator:
      return hook::g_range_known ? s.does : Do::kStep;
    case Do::kUnbox:
      return native::reads_number(s.rep) ? s.does : Do::kStep;
    case Do::kConvert: {
      const auto to = static_cast<Rep>(s.imm);
      const bool natural = s.rep == Rep::kNpUint64, narrower = typed::bits_of(to) == typed::Bits::kFloat;
      return natural || (narrower && typed::bits_of(s.rep) == typed::Bits::kInt64) ? Do::kStep : s.does;
    }
    default:
      return s.does;
  }
}

Rep result_of(const Step& s) {
  if (s.does == native::Do::kConvert) return static_cast<Rep>(s.imm);
  const bool quotient = s.does == native::Do::kBinary && static_cast<BinaryOp>(s.imm) == BinaryOp::true_divide;
  return quotient && s.rep == Rep::kInt ? Rep::kFloat : s.rep;
}

// May the step run code nothing is known of? (An item is put by the step only where that runs none.)
bool runs_code(const Step& s) {
  if (s.does == native::Do::kItem) return s.linked;
  if (s.does == native::Do::kQuick || s.does == native::Do::kPiece || s.does == native::Do::kItemsIterator ||
      s.does == native::Do::kAttribute || s.does == native::Do::kSetAttribute)
    return false;
  if (s.advances || s.runs_none || s.does == native::Do::kWaitAt || makes_quiet_iterator(s)) return false;
  return s.exec != nullptr || (s.link >= 0 && s.does == native::Do::kStep);
}

// Tells the generator of a loop's program and of the side traces that may be part of its function.
class Describer {
 public:
  Describer(Native& native, size_t below) : native_(native), below_(below) { native_.addresses = native_addresses(); }

  native::Region describe(ProgramImpl& root) {
    add(root, -1, -1);
    do find_inside();
    while (goes_on_outside());
    place_registers();
    find_questions();
    for (ProgramImpl* program : native_.programs)
      if (!program->folded.empty()) native_.worlds.push_back(program);
    region_.objects = static_cast<int32_t>(native_.addresses.size()) - native::kAddresses;
    return std::move(region_);
  }

 private:
  static bool has_code(const native::Instr& in) { return in.runs_code && in.what == native::Do::kStep; }

  // Whether the run may go on has to be asked again where code may have run since the loop's head. There all worlds hold: whoever asks asks
  // for those of the whole region. (Native code leaves at once where what dies between steps may have run code.)
  void find_questions() {
    for (size_t k = 0; k < region_.blocks.size(); ++k) {
      native::Block& block = region_.blocks[k];
      if (native::Instr& last = block.instrs.back(); last.what == native::Do::kJump)
        last.asks = disturbed(static_cast<int32_t>(k), block.instrs.size());
      if (block.parent < 0) continue;
      block.asks = disturbed(block.parent, at_guard(block)) || !block.boxes.empty();
    }
  }
  size_t at_guard(const native::Block& side) const {
    return static_cast<size_t>(side.guard - region_.blocks[static_cast<size_t>(side.parent)].number);
  }
  bool disturbed(int32_t k, size_t until) const {
    const native::Block& block = region_.blocks[static_cast<size_t>(k)];
    if (std::any_of(block.instrs.begin(), block.instrs.begin() + static_cast<ptrdiff_t>(until), has_code)) return true;
    return block.parent >= 0 && disturbed(block.parent, at_guard(block));
  }

  void add(ProgramImpl& p, int32_t parent, int32_t guard) {
    native::Block& block = region_.blocks.emplace_back();
    block.parent = parent;
    block.guard = guard;
    block.depth = parent < 0 ? 0 : region_.blocks[parent].depth + 1;
    block.first_reg = p.first_reg;
    block.number = next_;
    next_ += static_cast<int32_t>(p.steps.size());
    native_.programs.push_back(&p);
    native_.plans.push_back(nullptr);
    for (Step& s : p.steps) {
      s.runs_none = s.fn == step_exec && s.link < 0 && s.does == native::Do::kStep && !makes_quiet_iterator(s);
      block.instrs.push_back(instr(p, s));
    }
    for (ValueId v = 0; v < p.data().n_params; ++v) block.holds.push_back(p.locs[v].obj);
    for (const ConstReg& c : p.consts) {
      if (!c.object) {
        block.constants[c.reg] = {c.value.i, std::bit_cast<int64_t>(c.value.c.imag)};
        continue;
      }
      block.holds.push_back(c.reg);
      block.objects[c.reg] = address(c.value.o);
    }
  }

  void binary(const Step& s, native::Instr* in) {
    const auto op = static_cast<BinaryOp>(s.imm);
    const bool pair = s.rep == Rep::kComplex;
    in->real = typed::is_pair(s.rep) ? static_cast<typed::Real>(s.other) : typed::Real::kNeither;
    in->n = pair ? complex_operator_function(BinaryOp::multiply, typed::Real::kNeither) != nullptr : s.other >= 0;
    if (const void* function = pair ? complex_operator_function(op, in->real) : operator_function(op, s.rep))
      in->object = address(function);
  }

  native::Instr instr(ProgramImpl& p, const Step& s) {
    native::Instr in;
    in.what = known(s);
    in.rep = s.rep;
    in.to = result_of(s);
    in.runs_code = runs_code(s);
    needs(p, s, &in);
    in.dst = s.dst, in.a = s.a, in.b = s.b, in.c = s.c, in.imm = s.imm, in.n = s.n;
    in.advances = s.advances;
    in.only_called = s.only_called || s.runs_none || s.fn == step_view;
    in.settles = (s.advances || s.does == native::Do::kPutItem || s.does == native::Do::kSetAttribute) && s.n == 1;
    if (s.does == native::Do::kNext) next(*s.next, &in);
    if (s.fn == step_segment) computes(p.groups[static_cast<size_t>(s.imm)], &in);
    if (asks_for_class(s)) in.of_class = address(s.attribute->attribute.type);
    switch (in.what) {
      case native::Do::kBinary:
        binary(s, &in);
        break;
      case native::Do::kLoad:
      case native::Do::kStore:
      case native::Do::kRelease:
      case native::Do::kRangeIterator:
        in.list.assign(s.list, s.list + s.n);
        break;
      case native::Do::kCall:
        in.list.assign(s.list, s.list + s.n);
        in.callee = static_cast<typed::Callee>(s.other);
        shared(s, &in);
        in.to = result_of(in.callee, s.rep);
        if (const void* function = s.rep == Rep::kComplex        ? complex_function(in.callee)
                                   : s.rep == Rep::kNpComplex128 ? numpy_complex_function(in.callee)
                                                                 : c_function(in.callee))
          in.object = address(function);
        break;
      case native::Do::kGuardWorld:
        in.n = !p.folded.empty();
        break;
      case native::Do::kSetItem:
        in.c = s.other;
        break;
      case native::Do::kGuardType:
        in.object = address(s.object);
        break;
      case native::Do::kAttribute:
      case native::Do::kSetAttribute:
        in.object = address(s.attribute);
        break;
      case native::Do::kGuardIs:
      case native::Do::kGuardTruthy:
        in.object = address(s.object);
        break;
      case native::Do::kGuardFunction:
        in.object = address(s.object);
        in.list = {address(s.name), address(&PyFunction_Type)};
        break;
      case native::Do::kGuardDefaults:
        in.object = address(&PyFunction_Type);
        break;
      case native::Do::kGuardWaiting:
      case native::Do::kBeginToRun:
      case native::Do::kWaitAt:
        generator(s, &in);
        break;
      case native::Do::kQuick:
        in.imm = s.truth;
        break;
      case native::Do::kJump:
        jump(p, s, &in);
        break;
      default:
        break;
    }
    return in;
  }

  void generator(const Step& s, native::Instr* in) {
    if (in->what == native::Do::kBeginToRun) return;
    in->object = address(s.object);
    in->n = static_cast<int32_t>(PyUnicode_GET_LENGTH(s.name));
    const Py_UCS1* bound = PyUnicode_1BYTE_DATA(s.name);
    const bool waits = in->what == native::Do::kWaitAt;
    if (waits) in->list.assign(s.list, s.list + s.n);
    if (!waits) in->list = {address(&PyGen_Type), address(Py_None), address(s.object2)};
    for (int32_t i = 0; i < in->n; ++i) in->slots.push_back(bound[i] == '1');
  }

  // What the write that ends the group gives is a register of its own (LoopSink::result).
  static void computes(const Group& group, native::Instr* in) {
    if (!group.loops) return;
    in->computes = in->settles = in->only_called = true;
    in->runs_code = false;
    for (const LoopOp& op : group.loops->ops)
      if (op.out >= 0) in->fills.push_back(op.out);
    if (group.loops->sink.result >= 0) in->fills.push_back(group.loops->sink.result);
  }

  void next(const NextPlan& plan, native::Instr* in) {
    in->holder = plan.holder;
    for (int32_t k = 0; k < plan.n; ++k) {
      const NextItem& item = plan.items[k];
      const PyTypeObject* type = recorder::type_of_walk(item.over);
      in->next.push_back({item.over, item.rep, item.raw, item.obj, type ? address(type) : -1});
    }
  }

  // What gives back an operand gives its object, too, but where nobody ever sees that.
  static void shared(const Step& s, native::Instr* in) {
    for (int32_t k = 0; k < s.n && s.c >= 0; ++k)
      if (typed::gives_argument(in->callee, s.rep)) in->objects.push_back(s.list[s.n + k]);
    if (std::all_of(in->objects.begin(), in->objects.end(), [](int32_t reg) { return reg < 0; })) in->objects.clear();
  }

  static Rep result_of(typed::Callee callee, Rep operand) {
    const Rep operands[] = {operand, operand, operand};
    const bool two =
        callee == typed::Callee::kMin || callee == typed::Callee::kMax || callee == typed::Callee::kGcd || typed::takes_two_doubles(callee);
    return typed::call_operator(callee, std::span(operands, callee == typed::Callee::kClip ? 3 : two ? 2 : 1)).result;
  }
  static Rep result_of(const Step& s) { return replay::result_of(s); }

  int32_t address(const void* object) {
    const auto first = native_.addresses.begin() + native::kAddresses;
    const auto found = std::find(first, native_.addresses.end(), object);
    const auto index = static_cast<int32_t>(found - first);
    if (found == native_.addresses.end()) native_.addresses.push_back(object);
    return index;
  }

  int32_t block_of(const ProgramImpl* program) const {
    const auto found = std::find(native_.programs.begin(), native_.programs.end(), program);
    return found == native_.programs.end() ? -1 : static_cast<int32_t>(found - native_.programs.begin());
  }

  static const JumpPlan& prepared(ProgramImpl& p, const Step& jump) {
    JumpPlan& plan = p.jumps[jump.imm];
    if (!plan.target) prepare_jump(p, plan);
    return plan;
  }

  void jump(ProgramImpl& p, const Step& s, native::Instr* in) {
    const JumpPlan& plan = prepared(p, s);
    in->target = plan.target ? block_of(plan.target) : -1;
    if (in->target < 0 || plan.impossible) {
      in->what = native::Do::kEnd;
      return;
    }
    for (const auto& [loc, object] : plan.same) in->promises.push_back({native::Promise::kIsObject, loc.obj, address(object)});
    for (const auto& [loc, type] : plan.types) {
      const bool quiet = type == quiet_mark();
      const auto what = quiet                         ? native::Promise::kIsQuiet
                        : has_type_unboxed(loc, type) ? native::Promise::kIsOfTypeOrNull
                                                      : native::Promise::kIsOfType;
      in->promises.push_back({what, loc.obj, quiet ? -1 : address(type)});
    }
    for (const Move& move : plan.moves) in->moves.push_back(on_its_way(move));
    in->drops = plan.drop;
  }

  static native::Move on_its_way(const Move& move) {
    native::Move to;
    const bool same = move.from.rep == move.to.rep;
    if (move.to.rep == Rep::kNone || (move.to.either() && !same)) {
      to.boxes = move.from.may_lack_object();
      if (to.boxes) to.from = move.from.raw, to.rep = move.from.rep;
    } else {
      to.unboxes = !same || (move.from.either() && !move.to.either());
      to.checks = typed::may_be_same(move.from.rep, move.to.rep);
      to.from = same || to.checks ? move.from.raw : -1, to.to = move.to.raw, to.rep = move.to.rep;
      to.boxes = move.makes;
    }
    if (move.same >= 0) to.boxes = false;
    to.from_object = move.from.obj, to.to_object = move.to.obj, to.takes = move.takes, to.same = move.same;
    return to;
  }

  // What the snapshots hold that frames are made of here, and what is returned.
  void needs(ProgramImpl& p, const Step& s, native::Instr* in) {
    if (s.link >= 0) add_slots(p, s.link, &in->needs);
    if (s.fn == step_return && p.locs[s.imm].raw >= 0) in->needs.push_back(p.locs[s.imm].raw);
    if (s.exit < 0) return;
    add_plan(p, p.plans[s.exit], in);
    if (p.data().ops[p.plans[s.exit].op].kind == OpKind::iter_next && s.other >= 0) add_plan(p, p.plans[s.other], in);
  }
  static void add_parts(const Virtual& what, native::Instr* in) {
    for (const Loc& part : what.parts) in->needs.push_back(part.raw);
    for (const Virtual* inner : what.inner)
      if (inner) add_parts(*inner, in);
  }
  void add_plan(ProgramImpl& p, const ExitPlan& plan, native::Instr* in) {
    add_slots(p, plan.snapshot, &in->needs);
    in->needs_all |= !plan.pending.empty();
    for (const Virtual* what : plan.virtuals) add_parts(*what, in);
  }
  // Built once for all the steps that have it.
  void add_slots(ProgramImpl& p, int32_t snapshot, std::vector<int32_t>* needs) {
    const auto [found, is_new] = unboxed_.try_emplace({&p, snapshot});
    if (is_new)
      for (ValueId v : slots_of(p.data().snapshot(snapshot)))
        if (v != kNull && p.locs[v].raw >= 0) found->second.push_back(p.locs[v].raw);
    needs->insert(needs->end(), found->second.begin(), found->second.end());
  }

  // Where there is not room for all a nest of loops goes first: what comes back to loops that are part of the region, as long as there is
  // such, and then one trace that leads to another loop, and what comes back to that.
  void find_inside() {
    for (size_t k = 0; k < native_.programs.size(); ++k) {
      find_loop(static_cast<int32_t>(k), false);
      find_sides(static_cast<int32_t>(k), false);
    }
  }
  bool goes_on_outside() {
    for (size_t k = 0; k < native_.programs.size(); ++k)
      if (find_loop(static_cast<int32_t>(k), true) || find_sides(static_cast<int32_t>(k), true)) return true;
    return false;
  }

  // The loop that a block ends with a jump to. True: it has become part of the region.
  bool find_loop(int32_t k, bool outside) {
    ProgramImpl& p = *native_.programs[k];
    const Step& last = p.steps.back();
    if (last.does != native::Do::kJump || region_.blocks[k].instrs.back().what != native::Do::kEnd) return false;
    const JumpPlan& plan = p.jumps[last.imm];
    if (!plan.target || plan.target->parent || plan.impossible || !is_known(*plan.target)) return false;
    const bool adds = block_of(plan.target) < 0;
    if (adds && (!outside || static_cast<size_t>(next_) + plan.target->steps.size() > native_.most)) return false;
    if (adds) add(*plan.target, -1, -1);
    region_.blocks[k].instrs.back() = instr(p, last);
    return adds;
  }
  bool stays_inside(ProgramImpl& side) const {
    const Step& last = side.steps.back();
    if (last.does != native::Do::kJump) return false;
    const JumpPlan& plan = prepared(side, last);
    return plan.target && block_of(plan.target) >= 0;
  }

  // Each loop and its side traces have registers of their own, one after the other.
  void place_registers() {
    native_.n_regs = 0;
    for (size_t k = 0; k < region_.blocks.size(); ++k) {
      if (region_.blocks[k].parent >= 0) {
        region_.blocks[k].offset = region_.blocks[region_.blocks[k].parent].offset;
        continue;
      }
      region_.blocks[k].offset = native_.n_regs;
      int32_t most = 0;
      for (const ProgramImpl* p : native_.programs)
        if (p->hangs_on(native_.programs[k])) most = std::max(most, p->n_regs);
      native_.n_regs += most;
    }
    for (const native::Block& block : region_.blocks) native_.offsets.push_back(block.offset);
  }

  // The side traces of guards, and of the ends of iterators, of a block: all that stay inside, or (outside) the next one, which may lead
  // anywhere. True: that has become part of the region.
  bool find_sides(int32_t k, bool outside) {
    ProgramImpl& p = *native_.programs[k];
    for (size_t i = 0; i < p.steps.size(); ++i) {
      const int32_t number = side_plan(region_.blocks[k].instrs[i].what, p.steps[i]);
      if (number < 0) continue;
      ExitPlan& plan = p.plans[number];
      auto* side = static_cast<ProgramImpl*>(p.exit_records[plan.exit].side);
      if (!side || !is_known(*side) || !joins(p, plan, *side, k) || !(outside || stays_inside(*side))) continue;
      const auto block = static_cast<int32_t>(region_.blocks.size());
      region_.blocks[k].instrs[i].side = block;
      add(*side, k, region_.blocks[k].number + static_cast<int32_t>(i));
      region_.blocks[block].owns = plan.own;
      region_.blocks[block].drops = plan.drop;
      region_.blocks[block].nulls = side->object_regs;
      for (const Loc& loc : plan.box) region_.blocks[block].boxes.push_back({.from = loc.raw, .rep = loc.rep, .to_object = loc.obj});
      for (const Virtual* what : plan.virtuals) add_built(*what, &region_.blocks[block]);
      native_.plans.back() = &plan;
      if (outside) return true;
    }
    return false;
  }
  // What is built of its parts, which may be boxed for that.
  static void add_built(const Virtual& what, native::Block* block) {
    block->boxes.push_back({.to_object = what.reg});
    for (const Loc& part : what.parts) block->boxes.push_back({.from = part.raw, .rep = part.rep, .to_object = part.obj});
    for (const Virtual* inner : what.inner)
      if (inner) add_built(*inner, block);
  }
  bool is_known(const ProgramImpl& p) const { return static_cast<size_t>(p.data().number) < below_; }
  bool joins(ProgramImpl& p, ExitPlan& plan, ProgramImpl& side, int32_t k) {
    if (!plan.pending.empty() || !comes_back(side)) return false;
    if (region_.blocks[k].depth + 1 >= native::kDeepest || static_cast<size_t>(next_) + side.steps.size() > native_.most) return false;
    if (std::find(native_.programs.begin(), native_.programs.end(), &side) != native_.programs.end()) return false;
    if (plan.prepared != &side) prepare_side(p, plan, &side);
    return !side.steps.empty();
  }

  Native& native_;
  const size_t below_;
  native::Region region_;
  int32_t next_ = 0;
  std::map<std::pair<const ProgramImpl*, int32_t>, std::vector<int32_t>> unboxed_;  // registers, by snapshot
};

}  // namespace

bool makes_quiet_iterator(const Step& s) { return s.exec == exec_of(OpKind::get_iter) && s.pure; }

native::Region describe(ProgramImpl& root, Native* native, size_t below) { return Describer(*native, below).describe(root); }

}  // namespace dalsegno::replay
