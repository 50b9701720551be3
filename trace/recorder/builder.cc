#include "trace/recorder/builder.h"

#include <algorithm>
#include <iterator>

#include "trace/recorder/text.h"

namespace dalsegno::recorder {

// ---- a trace, from its beginning to its end --------------------------------------------------------------------------------

void Builder::open(AnchorKind anchor, int number, PyFunctionObject* root) {
  constexpr size_t kUsual = 128;  // operations
  trace_ = std::make_unique<LiveTrace>();
  trace_->data.ops.reserve(kUsual);
  info_.reserve(kUsual);
  trace_->data.number = number;
  trace_->data.anchor = anchor;
  info_.clear();
  touched_.clear();
  made_.clear();
  constants_.clear();
  object_index_.clear();
  name_index_.clear();
  ++epoch_;
  behind_ = -1;
  object_index(reinterpret_cast<PyObject*>(root), "self");
}

void Builder::open_entry(Shadow outermost, int params, PyFunctionObject* function) {
  shadows_.push_back(std::move(outermost));
  Shadow& f = innermost();
  int n = 0;
  const auto param = [&] { return emit(OpKind::param, {}, {.imm = n++, .snapshot = false}); };
  if (!function) f.function = param();
  for (int i = 0; i < params; ++i) hold(f.locals[i] = param(), +1);
  trace_->data.n_params = n;
  if (function) f.function = constant(reinterpret_cast<PyObject*>(function), "self");
  hold(f.function, +1);
}

void Builder::open_exit(const LiveTrace& parent, int op, int which, const Snapshot& at, std::vector<Shadow> shadows) {
  Trace& t = trace_->data;
  t.parent = parent.data.number;
  t.parent_op = op;
  t.parent_exit = which;
  std::unordered_map<ValueId, ValueId> params;
  auto param = [&](ValueId v) {
    if (v == kNull) return kNull;
    auto [it, fresh] = params.try_emplace(v, kNull);
    if (fresh) it->second = emit(OpKind::param, {}, {.imm = static_cast<int>(params.size()) - 1, .snapshot = false});
    return it->second;
  };
  for (size_t i = 0; i < at.frames.size(); ++i) {
    const SnapshotFrame& from = at.frames[i];
    Shadow& shadow = shadows[i];
    shadow.function = param(from.function);
    for (ValueId v : from.locals) shadow.locals.push_back(param(v));
    for (ValueId v : from.stack) shadow.stack.push_back(param(v));
    shadows_.push_back(std::move(shadow));
  }
  t.n_params = static_cast<int>(params.size());
  for (Shadow& f : shadows_) {
    hold(f.function, +1);
    for (ValueId v : f.locals) hold(v, +1);
    for (ValueId v : f.stack) hold(v, +1);
  }
  touched_.clear();
  t.entry = shape_now(at.frames.back().offset);
  for (size_t i = 0; i < at.frames.size(); ++i) know_constants(parent, at.frames[i].stack, &shadows_[i].stack);
  touched_.clear();
}

// What waits on the stack, a function about to be called, say, is the constant that it is there.
void Builder::know_constants(const LiveTrace& parent, const std::vector<ValueId>& there, std::vector<ValueId>* here) {
  for (size_t k = 0; k < there.size(); ++k) {
    if (there[k] == kNull || parent.data.ops[there[k]].kind != OpKind::constant) continue;
    const auto object = static_cast<size_t>(parent.data.ops[there[k]].object);
    const ValueId known = constant(parent.objects[object], parent.data.objects[object].source);
    hold(known, +1);
    hold((*here)[k], -1);
    (*here)[k] = known;
  }
}

void Builder::open_loop(int number, PyFunctionObject* root, int header) {
  open(AnchorKind::loop, number, root);
  int n = 0;
  auto param = [&](ValueId& v) {
    if (v == kNull) return;
    v = emit(OpKind::param, {}, {.imm = n++, .snapshot = false});
    info_[v].slots = 1;
  };
  for (Shadow& f : shadows_) {
    f.written = f.at_call = f.code_object = -1;
    f.changed.clear();
    f.kept = 0;
    param(f.function);
    for (ValueId& v : f.locals) param(v);
    for (ValueId& v : f.stack) param(v);
  }
  trace_->data.n_params = n;
  trace_->data.entry = shape_now(header);
  mark();
}

std::unique_ptr<LiveTrace> Builder::close(Reason reason, std::string where) {
  trace_->data.reason = reason;
  trace_->data.where = std::move(where);
  return std::move(trace_);
}

// ---- an instruction --------------------------------------------------------------------------------------------------------

void Builder::begin_instruction(int start, int line) {
  start_ = start;
  line_ = line;
  mark();
  if (behind_offset_ == start) check_.snapshot = behind_;  // the same state
  behind_ = -1;
}

void Builder::mark() {
  check_.begun = true;
  check_.ops = trace_->data.ops.size();
  check_.inputs = trace_->data.inputs.size();
  check_.snapshots = trace_->data.snapshots.mark();
  check_.depth = shadow().stack.size();
  check_.top = shadow().stack.empty() ? kNull : shadow().stack.back();
  check_.snapshot = -1;
  changes_.clear();
}

void Builder::roll_back() {
  trace_->data.ops.resize(check_.ops);
  trace_->data.inputs.resize(check_.inputs);
  trace_->data.snapshots.back_to(check_.snapshots);
  info_.resize(check_.ops);
  for (auto it = constants_.begin(); it != constants_.end();)
    it = it->second >= static_cast<ValueId>(check_.ops) ? constants_.erase(it) : std::next(it);
  swap_state();
  changes_.clear();
  for (Shadow& f : shadows_) {  // what they were last written as may be gone
    if (f.written >= static_cast<int>(check_.snapshots.frames)) f.written = -1, f.kept = 0;
    if (f.at_call >= static_cast<int>(check_.snapshots.frames)) f.at_call = -1;
  }
  check_.snapshot = behind_ = -1;
  touched_.clear();
}

uint32_t Builder::effects_of_instruction() const {
  uint32_t effects = kNoEffect;
  for (size_t i = check_.ops; i < trace_->data.ops.size(); ++i) effects |= trace_->data.ops[i].effects;
  return effects;
}

void Builder::settle(int at, int next) {
  if (disturbs(effects_of_instruction())) {
    emit(OpKind::guard_world, {}, {.snapshot = false});
    stand_behind(at, next);
  }
  release_dead(at, next);
}

// The op just emitted leaves behind its instruction, the one at `at`.
void Builder::stand_behind(int at, int next) {
  if (behind_ < 0 || behind_offset_ != next) behind_ = snapshot_now(next);
  behind_offset_ = next;
  trace_->data.ops.back().snapshot = behind_;
  trace_->data.ops.back().at = at;
}

// ---- ops -------------------------------------------------------------------------------------------------------------------

ValueId Builder::emit(OpKind kind, std::span<const ValueId> inputs, EmitArgs args) {
  Trace& t = trace_->data;
  int snap = args.leaves_by >= 0 ? args.leaves_by : args.snapshot ? snapshot() : -1;
  Op op;
  op.kind = kind;
  op.effects = args.effects & op_effects(kind);
  op.imm = args.imm;
  op.object = args.object;
  op.object2 = args.object2;
  op.name = args.name;
  op.snapshot = snap;
  op.first_input = static_cast<int>(t.inputs.size());
  op.n_inputs = static_cast<int>(inputs.size());
  op.line = line_;
  op.depth = shadows_.empty() ? 0 : static_cast<int>(shadows_.size()) - 1;
  t.inputs.insert(t.inputs.end(), inputs.begin(), inputs.end());
  may_change(op);
  t.ops.push_back(op);
  info_.emplace_back();
  auto v = static_cast<ValueId>(t.ops.size()) - 1;
  if (op_has_result(kind)) touched_.push_back(v);
  return v;
}

ValueId Builder::emit(OpKind kind, std::initializer_list<ValueId> inputs, EmitArgs args) {
  return emit(kind, std::span(inputs.begin(), inputs.size()), args);
}

// ---- names, objects, constants ----------------------------------------------------------------------------------------------

int Builder::name_index(PyObject* name) {
  PyObject* interned = Py_NewRef(name);
  PyUnicode_InternInPlace(&interned);
  auto [it, fresh] = name_index_.try_emplace(interned, static_cast<int>(trace_->names.size()));
  if (!fresh) {
    Py_DECREF(interned);
    return it->second;
  }
  trace_->names.push_back(interned);
  trace_->data.names.push_back(text_of(interned));
  if (!utf8_of(interned)) object_index(interned, "");  // an object without a source: such a trace is not kept
  return it->second;
}

int Builder::object_index(PyObject* object, const std::string& path) {
  auto [it, fresh] = object_index_.try_emplace(object, static_cast<int>(trace_->objects.size()));
  if (fresh) {
    trace_->objects.push_back(Py_NewRef(object));
    trace_->data.objects.push_back({path, ""});
  } else if (trace_->data.objects[it->second].source.empty()) {
    trace_->data.objects[it->second].source = path;
  }
  return it->second;
}

ValueId Builder::constant(PyObject* object, const std::string& path) {
  auto found = constants_.find(object);
  if (found != constants_.end()) return found->second;
  int index = object_index(object, path);
  ValueId v = emit(OpKind::constant, {}, {.object = index, .snapshot = false});
  constants_[object] = v;
  info_[v].object = object;
  info_[v].path = path;
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) info_[v].type = type;
  return v;
}

ValueId Builder::known_constant(PyObject* object) const {
  auto found = constants_.find(object);
  return found == constants_.end() ? kNull : found->second;
}

int Builder::names_index(PyObject* names) {
  std::string path = "const:tuple:";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    const std::string item = std::string("str:") + utf8_of(PyTuple_GET_ITEM(names, i));
    path += std::to_string(item.size()) + ":" + item;
  }
  return object_index(names, path);
}

int Builder::facts_index(const ArrayFacts& facts) {
  std::vector<ArrayFacts>& all = trace_->data.facts;
  auto found = std::find(all.begin(), all.end(), facts);
  if (found == all.end()) found = all.insert(found, facts);
  return static_cast<int>(found - all.begin());
}

bool Builder::fold(PyObject* dict, const std::string& dict_path, PyObject* name, PyObject* value, const std::string& value_path) {
  Folded folded;
  folded.dict = object_index(dict, dict_path);
  folded.name = name_index(name);
  folded.value = value ? object_index(value, value_path) : -1;
  for (const Folded& f : trace_->data.folded) {
    if (f == folded) return true;
    if (f.dict == folded.dict && f.name == folded.name) return false;
  }
  trace_->data.folded.push_back(folded);
  return true;
}

}  // namespace dalsegno::recorder
