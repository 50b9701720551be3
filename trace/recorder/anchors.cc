#include "trace/recorder/anchors.h"

namespace dalsegno::recorder {
namespace {

void add_shape(const SnapshotFrame& f, size_t* shape) {
  for (ValueId v : f.locals) *shape = *shape * 3 + (v == kNull ? 1 : 2);
  for (ValueId v : f.stack) *shape = *shape * 5 + (v == kNull ? 1 : 2);
}

}  // namespace

AnchorKey anchor_of(const LiveTrace& trace, const Snapshot& at) {
  AnchorKey key;
  size_t shape = 1;
  for (const SnapshotFrame& f : at.frames) {
    key.emplace_back(reinterpret_cast<PyCodeObject*>(trace.objects[f.code]), f.offset);
    add_shape(f, &shape);
    shape = shape * 7 + static_cast<size_t>(f.action);
  }
  key.emplace_back(nullptr, static_cast<int>(shape & 0x7fffffff));
  return key;
}

bool takes(const LiveTrace& loop, const SlotTypes& types) {
  const Trace& t = loop.data;
  std::vector<PyObject*> expected(t.n_params, nullptr);
  for (const Op& op : t.ops) {
    if (op.kind != OpKind::guard_type) continue;
    const ValueId v = t.inputs_of(op)[0];
    if (v < t.n_params && !expected[v]) expected[v] = loop.objects[op.object];
  }
  size_t slot = 0;
  auto fits = [&](ValueId v) {
    const PyObject* type = slot < types.size() ? reinterpret_cast<PyObject*>(types[slot]) : nullptr;
    ++slot;
    return v == kNull || v >= t.n_params || !type || !expected[v] || expected[v] == type;
  };
  for (const SnapshotFrame& f : t.entry.frames) {
    if (!fits(f.function)) return false;
    for (ValueId v : f.locals)
      if (!fits(v)) return false;
    for (ValueId v : f.stack)
      if (!fits(v)) return false;
  }
  return true;
}

}  // namespace dalsegno::recorder
