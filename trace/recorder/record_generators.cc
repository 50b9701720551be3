// Generators that a `for` goes through: what they do until their next yield is part of the trace. A generator that waits keeps its
// variables in a frame of its own; when it goes on, they are taken from there, and its frame is empty until it waits again.
#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "hook/generators.h"
#include "trace/fault.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/return_actions.h"

namespace dalsegno::recorder {
namespace {

constexpr int kMostSlots = 64;

// Does it ask for something by its own name? Then it may go through what it is itself, to any depth: a trace would be of one shape of that.
bool names_itself(PyCodeObject* code) {
  PyObject* variables = PyCode_GetFreevars(code);
  const bool closes_over = variables && PySequence_Contains(variables, code->co_name) == 1;
  Py_XDECREF(variables);
  const bool named = PySequence_Contains(code->co_names, code->co_name) == 1;
  PyErr_Clear();
  return named || closes_over;
}

}  // namespace

// Which of the innermost frame's slots are bound, a digit each.
std::string Recorder::bound_slots() const {
  std::string bound;
  for (const std::vector<ValueId>* slots : {&shadow().locals, &shadow().stack})
    for (const ValueId v : *slots) bound += v == kNull ? '0' : '1';
  return bound;
}

int Recorder::digits_index(const std::string& digits) {
  PyObject* name = PyUnicode_InternFromString(digits.c_str());
  if (!name) {
    PyErr_Clear();
    throw std::bad_alloc();
  }
  const int index = name_index(name);
  Py_DECREF(name);
  return index;
}

// action: what becomes of what it yields.
bool Recorder::resume_generator(ValueId generator, PyObject* live, int action) {
  const hook::WaitingGenerator at = live ? hook::waiting_generator(live) : hook::WaitingGenerator{};
  if (!at.slots || is_dead(generator) || at.count > kMostSlots || static_cast<int>(frames().size()) >= options_.max_depth) return false;
  const int flags = at.code->co_flags & kNotSimple;
  if (flags != CO_GENERATOR || at.function->vectorcall != function_->vectorcall || info_of(at.code)->delegates()) return false;
  auto* code = reinterpret_cast<PyObject*>(at.code);
  if (at.function->func_code != code || names_itself(at.code) || recurses(code)) return false;
  std::string bound;
  for (int i = 0; i < at.count; ++i) bound += at.slots[i].get() ? '1' : '0';
  const int name = digits_index(bound);
  const int object = object_index(code, sources_.of_code(at.function));
  const int globals = object_index(at.globals, sources_.of_globals(at.globals));
  emit(OpKind::guard_waiting, {generator}, {.imm = at.next, .object = object, .object2 = globals, .name = name, .effects = kReadsMemory});
  call_.function = emit(OpKind::waiting_slot, {generator}, {.imm = -1, .snapshot = false});
  set_type(call_.function, &PyFunction_Type);
  const int locals = at.code->co_nlocalsplus;
  for (int i = 0; i < at.count; ++i) {
    const ValueId v = bound[i] == '1' ? emit(OpKind::waiting_slot, {generator}, {.imm = i, .snapshot = false}) : kNull;
    (i < locals ? call_.locals : call_.stack).push_back(v);
  }
  emit(OpKind::begin_to_run, {generator}, {.imm = locals, .snapshot = false});
  const bool begins = info_of(at.code)->is_before_entry(at.next);
  if (!begins) call_.stack.push_back(constant(Py_None, "const:None"));  // what is sent
  call_.goes_on = true;
  call_.action = action;
  call_.pops = 0;
  if (!hook::watch_code(at.code)) return give_up(Reason::lost), true;
  will_enter(at.code, begins ? -1 : at.next);
  return true;
}

// next(generator), next(generator, default)
bool Recorder::advance(PyObject* live, const Arguments& arguments) {
  if (builtin_name(live) != "next" || arguments.names || arguments.values.empty() || arguments.values.size() > 2) return false;
  return resume_generator(arguments.values[0], arguments.live[0], packed_action(hook::ReturnAction::kNextCall, call_.pops));
}

void Recorder::on_YIELD_VALUE(const Instr& i) {
  const ValueId generator = running_generator(), value = top();
  if (generator == kNull) return not_recorded(i);
  if (frame_is_kept()) return give_up(Reason::frame_kept);
  hold(value, +1);
  pop();
  std::vector<ValueId> inputs{generator};
  for (const std::vector<ValueId>* slots : {&shadow().locals, &shadow().stack})
    std::copy_if(slots->begin(), slots->end(), std::back_inserter(inputs), [](ValueId v) { return v != kNull; });
  if (planted(Fault::waiting_swapped) && inputs.size() > 2) std::swap(inputs[1], inputs[2]);
  const int name = digits_index(bound_slots());
  const int code = object_index(reinterpret_cast<PyObject*>(frame().code->code), shadow().code_path);
  emit(OpKind::wait_at, inputs, {.imm = i.next, .object = code, .name = name, .effects = kWritesMemory});
  push(value);
  hold(value, -1);
  will_return();
}

// The frame that returns may be a generator's. next() without a default raises then.
bool Recorder::end_generator(const Instr& instr) {
  const ValueId generator = running_generator();
  if (generator == kNull) return false;
  const Instr& call = *frames()[frames().size() - 2].call;
  const bool loop = call.op == Opcode::FOR_ITER;
  const bool given = operands_of(shadows()[shadows().size() - 2].action) > 3;  // a default
  if (!loop && !given) return give_up(Reason::exception), true;
  emit(OpKind::end_running, {generator}, {.imm = instr.start, .snapshot = false});
  ended_ = true;
  will_return(loop ? for_iter_ends(call) : -1);
  return true;
}

// The frame's variables die, then what it has returned, then the generator.
void Recorder::has_left_ended(const Instr& call) {
  const ValueId generator = running_generator(), value = top();
  hold(generator, +1);
  hold(value, +1);
  take_end(leave_ended());
  release_dead(call.at, next_start());
  for (const ValueId v : {value, generator}) {
    hold(v, -1);
    release_dead(call.at, next_start());
  }
}

// What becomes of a generator that has come to its end, in the frame that went on with it.
void Recorder::take_end(int action) {
  const int operands = operands_of(action);
  if (operands == 0) return kPopsIterator ? void() : static_cast<void>(pop());
  replace_top(operands, top());  // the default
}

}  // namespace dalsegno::recorder
