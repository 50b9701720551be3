#include "trace/snapshots.h"

#include <algorithm>

namespace dalsegno {

SnapshotFrame Snapshots::frame(int32_t index) const {
  std::vector<int32_t> chain;
  for (int32_t i = index; i >= 0; i = frames[i].base) chain.push_back(i);
  const FrameDelta& head = frames[index];
  SnapshotFrame whole{head.function, head.code, head.offset, head.after, {}, {}, head.action};
  whole.locals.assign(head.n_locals, kNull);
  for (auto i = chain.rbegin(); i != chain.rend(); ++i) {
    const FrameDelta& delta = frames[*i];
    const int32_t* slot = slots.data() + delta.first;
    for (int32_t k = 0; k < delta.changed; ++k, slot += 2) whole.locals[slot[0]] = slot[1];
    whole.stack.resize(delta.kept);
    whole.stack.insert(whole.stack.end(), slot, slot + delta.pushed);
  }
  return whole;
}

Snapshot Snapshots::at(int32_t snapshot) const {
  Snapshot whole;
  size_t depth = 0;
  for (int32_t i = tops[snapshot]; i >= 0; i = frames[i].outer) ++depth;
  whole.frames.resize(depth);
  for (int32_t i = tops[snapshot]; i >= 0; i = frames[i].outer) whole.frames[--depth] = frame(i);
  return whole;
}

int32_t Snapshots::add_frame(const FrameDelta& head) {
  frames.push_back(head);
  FrameDelta& added = frames.back();
  added.first = static_cast<int32_t>(slots.size());
  added.changed = added.pushed = 0;
  return static_cast<int32_t>(frames.size()) - 1;
}

namespace {

constexpr int32_t kMaxSlots = 1 << 15;  // what a frame may take to build

struct Shape {
  int64_t depth = 0;   // of the stack
  int64_t weight = 0;  // of the deltas since the last frame in full
};

const char* fault_of(const Snapshots& s, int32_t i, const std::vector<Shape>& before, Shape* made) {
  const FrameDelta& f = s.frames[i];
  if (f.outer < -1 || f.outer >= i || f.base < -1 || f.base >= i) return "a frame without what it builds on";
  if (f.kept < 0 || f.first < 0 || f.changed < 0 || f.pushed < 0) return "negative count";
  if (f.first + 2 * int64_t{f.changed} + f.pushed > static_cast<int64_t>(s.slots.size())) return "slots out of range";
  if (f.n_locals < 0 || f.n_locals > kMaxSlots || f.kept > kMaxSlots) return "too many slots";
  for (int32_t k = 0; k < f.changed; ++k)
    if (const int32_t local = s.slots[f.first + 2 * k]; local < 0 || local >= f.n_locals) return "no such local";
  made->depth = int64_t{f.kept} + f.pushed;
  if (f.base < 0) return f.kept == 0 ? nullptr : "a stack of nowhere";
  const FrameDelta& base = s.frames[f.base];
  if (base.function != f.function || base.code != f.code || base.n_locals != f.n_locals) return "a frame that builds on another one";
  if (f.kept > before[f.base].depth) return "a stack of nowhere";
  made->weight = before[f.base].weight + 1 + f.changed + f.pushed;
  return made->weight <= delta_budget(static_cast<size_t>(f.n_locals + made->depth)) ? nullptr : "too many deltas";
}

}  // namespace

const char* Snapshots::fault() const {
  std::vector<Shape> shapes(frames.size());
  for (size_t i = 0; i < frames.size(); ++i)
    if (const char* fault = fault_of(*this, static_cast<int32_t>(i), shapes, &shapes[i])) return fault;
  for (int32_t top : tops)
    if (top < 0 || static_cast<size_t>(top) >= frames.size()) return "without frames";
  return nullptr;
}

void Snapshots::change(int32_t local, ValueId v) {
  slots.push_back(local);
  slots.push_back(v);
  ++frames.back().changed;
}

void Snapshots::push(ValueId v) {
  slots.push_back(v);
  ++frames.back().pushed;
}

void Snapshots::back_to(const Mark& mark) {
  frames.resize(mark.frames);
  slots.resize(mark.slots);
  tops.resize(mark.tops);
}

namespace {

bool same_activation(const SnapshotFrame& a, const SnapshotFrame& b) {
  return a.function == b.function && a.code == b.code && a.locals.size() == b.locals.size();
}

size_t common(const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

size_t weight_over(const Snapshots& s, int32_t frame) {
  size_t weight = 0;
  for (; s.frames[frame].base >= 0; frame = s.frames[frame].base) weight += 1 + s.frames[frame].changed + s.frames[frame].pushed;
  return weight;
}

int32_t add_delta(Snapshots& to, const SnapshotFrame& f, int32_t outer, int32_t base) {
  const SnapshotFrame empty{f.function, f.code, 0, 0, std::vector<ValueId>(f.locals.size(), kNull), {}, 0};
  const SnapshotFrame from = base >= 0 ? to.frame(base) : empty;
  const size_t kept = common(from.stack, f.stack);
  size_t weight = base >= 0 ? weight_over(to, base) + 1 + f.stack.size() - kept : 0;
  for (size_t k = 0; k < f.locals.size(); ++k) weight += f.locals[k] != from.locals[k];
  if (base >= 0 && static_cast<int64_t>(weight) > delta_budget(f.locals.size() + f.stack.size())) return add_delta(to, f, outer, -1);
  const int32_t added = to.add_frame({.outer = outer,
                                      .base = base,
                                      .function = f.function,
                                      .code = f.code,
                                      .offset = f.offset,
                                      .after = f.after,
                                      .action = f.action,
                                      .n_locals = static_cast<int32_t>(f.locals.size()),
                                      .kept = static_cast<int32_t>(kept)});
  for (size_t k = 0; k < f.locals.size(); ++k)
    if (f.locals[k] != from.locals[k]) to.change(static_cast<int32_t>(k), f.locals[k]);
  for (size_t k = kept; k < f.stack.size(); ++k) to.push(f.stack[k]);
  return added;
}

}  // namespace

int32_t Snapshots::add(const Snapshot& snapshot, int32_t like) {
  std::vector<int32_t> path;  // the frames of `like`, outermost first
  for (int32_t i = like < 0 ? -1 : tops[like]; i >= 0; i = frames[i].outer) path.insert(path.begin(), i);
  int32_t outer = -1;
  bool shared = true;  // all frames so far are those of `like`
  for (size_t depth = 0; depth < snapshot.frames.size(); ++depth) {
    const SnapshotFrame& f = snapshot.frames[depth];
    int32_t base = depth < path.size() ? path[depth] : -1;
    const SnapshotFrame before = base >= 0 ? frame(base) : SnapshotFrame{};
    shared = shared && base >= 0 && before == f;
    if (!same_activation(before, f)) base = -1;
    outer = shared ? base : add_delta(*this, f, outer, base);
  }
  tops.push_back(outer);
  return static_cast<int32_t>(tops.size()) - 1;
}

}  // namespace dalsegno
