// The interpreter's stack while the code of a fold is translated: which slots its entries stand in, and what is no object there: pairs,
// slices and indices, iterators. Part of fold_code.cc.
#pragma once
#include <Python.h>

#include <algorithm>
#include <vector>

#include "replay/machine/fold.h"
#include "replay/machine/fold_arrays.h"

namespace dalsegno::replay::folds {

inline constexpr int16_t kPosition = ArrayViews::kPosition;

struct Entry {
  // kSlice, kIndex: `second` parts of an index, three slots each in the list, from `slot` on
  enum Kind : uint8_t { kSlot, kPair, kIterator, kNull, kYielded, kSlice, kIndex } kind = kSlot;
  int16_t slot = -1, second = -1;  // kIterator: its number
  bool is_index() const { return kind == kSlice || kind == kIndex; }
  bool operator==(const Entry&) const = default;
};
using Stack = std::vector<Entry>;

class OperandStack {
 protected:
  OperandStack(PyCodeObject* code, FoldCode* out) : code_(code), out_(out) {}

  int16_t temporary(size_t depth) const { return static_cast<int16_t>(temporaries_ + depth); }
  bool is_temporary(int16_t slot) const { return slot >= temporaries_ && slot < temporaries_ + code_->co_stacksize; }

  // A pair, or more, that is no index: a tuple is made.
  bool pop(int16_t* slot) {
    if (stack_.empty() || !make_tuple(stack_.size() - 1) || stack_.back().kind != Entry::kSlot) return false;
    *slot = stack_.back().slot;
    stack_.pop_back();
    return true;
  }
  // Of the entry at that depth, if it stands for one; false: it is one with slices.
  bool make_tuple(size_t depth) {
    Entry& e = stack_[depth];
    if (e.kind != Entry::kPair && e.kind != Entry::kIndex) return true;
    FoldInstr made{FoldOp::kTuple};
    std::vector<int16_t> items;
    if (e.kind == Entry::kPair) items = {e.slot, e.second};
    for (int k = 0; e.kind == Entry::kIndex && k < e.second; ++k) {
      const int16_t* part = &out_->list[static_cast<size_t>(e.slot + 3 * k)];
      if (part[1] != kPosition) return false;
      items.push_back(part[0]);
    }
    made.b = static_cast<int16_t>(out_->list.size()), made.c = static_cast<int16_t>(items.size());
    out_->list.insert(out_->list.end(), items.begin(), items.end());
    made.dst = temporary(depth);
    out_->instrs.push_back(made);
    out_->makes_tuples = true;
    return e = {Entry::kSlot, made.dst}, true;
  }
  bool push(int slot) { return stack_.push_back({Entry::kSlot, static_cast<int16_t>(slot)}), true; }
  bool push_result(FoldInstr made) {
    made.dst = temporary(stack_.size());
    out_->instrs.push_back(made);
    return push(made.dst);
  }

  int16_t input(bool global, PyObject* object) {
    for (const FoldInput& known : out_->inputs)
      if (known.global == global && known.object == object) return known.slot;
    const auto slot = static_cast<int16_t>(out_->slots++);
    out_->inputs.push_back({slot, global, object});
    return slot;
  }

  // A slot for what is on top until the index is used: temporaries are used again before that.
  bool pop_part(int16_t* slot) {
    if (!pop(slot)) return false;
    if (!is_temporary(*slot)) return true;
    const auto own = static_cast<int16_t>(out_->slots++);
    out_->instrs.push_back({FoldOp::kMove, 0, own, *slot});
    return *slot = own, true;
  }

  bool slice(int n) {
    int16_t parts[] = {-1, -1, -1};
    for (int k = n; k-- > 0;)
      if (!pop_part(&parts[k])) return false;
    const Entry e{Entry::kSlice, static_cast<int16_t>(out_->list.size()), 1};
    out_->list.insert(out_->list.end(), parts, parts + 3);
    return stack_.push_back(e), true;
  }

  // A tuple with slices in it.
  bool index(int n) {
    std::vector<int16_t> parts;
    for (int k = 0; k < n; ++k) {
      if (stack_.empty()) return false;
      int16_t part[] = {-1, kPosition, kPosition};
      if (const Entry e = stack_.back(); e.kind == Entry::kSlice) {
        std::copy_n(&out_->list[static_cast<size_t>(e.slot)], 3, part);
        stack_.pop_back();
      } else if (!pop_part(&part[0])) {
        return false;
      }
      parts.insert(parts.begin(), part, part + 3);
    }
    const Entry e{Entry::kIndex, static_cast<int16_t>(out_->list.size()), static_cast<int16_t>(n)};
    out_->list.insert(out_->list.end(), parts.begin(), parts.end());
    return stack_.push_back(e), true;
  }

  bool tuple(int items) {
    const auto n = static_cast<size_t>(items);
    const bool sliced = n > 0 && n <= stack_.size() &&
                        std::any_of(stack_.end() - items, stack_.end(), [](const Entry& e) { return e.kind == Entry::kSlice; });
    return sliced || items > 2 ? index(items) : pair(items);
  }

  bool pair(int items) {
    Entry e{Entry::kPair};
    if (items != 2 || !pop_part(&e.second) || !pop(&e.slot)) return false;
    return stack_.push_back(e), true;
  }

  // What a constant entry holds, borrowed; else null.
  PyObject* constant_in(const Entry& e) const {
    if (e.kind != Entry::kSlot) return nullptr;
    const auto of = std::find_if(out_->inputs.begin(), out_->inputs.end(), [&](const FoldInput& i) { return i.slot == e.slot; });
    return of == out_->inputs.end() || of->global ? nullptr : of->object;
  }
  bool is_constant_pair(const Entry& e) const {
    PyObject* constant = constant_in(e);
    return constant && PyTuple_CheckExact(constant) && PyTuple_GET_SIZE(constant) == 2;
  }

  // What is on top, a pair or a constant one, at the list's end.
  bool pop_pair() {
    if (stack_.empty()) return false;
    Entry e = stack_.back();
    stack_.pop_back();
    if (e.kind == Entry::kSlot) {
      if (!is_constant_pair(e)) return false;
      PyObject* constant = constant_in(e);
      e = {Entry::kPair, input(false, PyTuple_GET_ITEM(constant, 0)), input(false, PyTuple_GET_ITEM(constant, 1))};
    }
    out_->list.insert(out_->list.end(), {e.slot, e.second});
    return e.kind == Entry::kPair;
  }

  // Of the last n entries, before they are arguments.
  bool make_tuples(size_t n) {
    for (size_t k = stack_.size() - n; k < stack_.size(); ++k)
      if (!make_tuple(k)) return false;
    return true;
  }

  bool pop_arguments(size_t n) {
    for (size_t k = stack_.size() - n; k < stack_.size(); ++k) {
      if (stack_[k].kind != Entry::kSlot) return false;
      out_->list.push_back(stack_[k].slot);
    }
    stack_.resize(stack_.size() - n);
    return true;
  }

  // f(a, (b, c), (1, 2)): the last one is constant, so nothing was computed in the other pair's place.
  bool pop_pairs_of_call(FoldInstr* made) {
    const Entry first = stack_[stack_.size() - 3];
    const bool constant = stack_.back().kind == Entry::kSlot;
    std::vector<int16_t>& list = out_->list;
    if (!constant || first.kind != Entry::kSlot || !pop_pair() || !pop_pair()) return false;
    made->op = FoldOp::kCallPairs;
    const auto at = list.begin() + made->b;
    std::rotate(at, at + 2, at + 4);  // the last argument's was taken first
    list.insert(list.begin() + made->b, first.slot);
    stack_.pop_back();
    return true;
  }

  PyCodeObject* code_;
  FoldCode* out_;
  int temporaries_ = 0;  // the first of them
  Stack stack_;
};

}  // namespace dalsegno::replay::folds
