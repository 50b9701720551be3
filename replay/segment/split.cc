#include "replay/segment/split.h"

#include <algorithm>

namespace dalsegno::replay {
namespace {

constexpr size_t kMaxSplits = 16;  // a segment whose shapes keep changing roles is left to NumPy

// The part's number for an operand that comes from outside of it.
int outside(std::vector<int>* inputs, int v) {
  const auto found = std::find(inputs->begin(), inputs->end(), v);
  if (found != inputs->end()) return ~static_cast<int>(found - inputs->begin());
  inputs->push_back(v);
  return ~static_cast<int>(inputs->size() - 1);
}

}  // namespace

// Does the value leave the part of its shape?
bool SplitSegment::leaves(const std::vector<int>& shape_numbers, int op) const {
  if (spec_.ops[op].output) return true;
  for (size_t i = op + 1; i < spec_.ops.size(); ++i) {
    const auto& operands = spec_.ops[i].operands;
    if (shape_numbers[i] != shape_numbers[op] && std::find(operands.begin(), operands.end(), op) != operands.end()) return true;
  }
  return false;
}

SplitSegment::Part SplitSegment::make_part(const std::vector<int>& shape_numbers, int number) const {
  Part part;
  SegmentSpec spec;
  std::vector<int> inside(spec_.ops.size(), -1);
  int last = -1;
  for (size_t i = 0; i < spec_.ops.size(); ++i) {
    if (shape_numbers[i] != number) continue;
    SegmentOp op = spec_.ops[i];
    for (int& v : op.operands) v = v >= 0 && inside[v] >= 0 ? inside[v] : outside(&part.inputs, v);
    op.output = leaves(shape_numbers, static_cast<int>(i));
    if (op.output) part.results.push_back(static_cast<int>(i));
    if (part.first < 0) part.first = static_cast<int>(i);
    inside[i] = static_cast<int>(spec.ops.size());
    spec.ops.push_back(std::move(op));
    last = static_cast<int>(i);
  }
  if (part.results.empty()) {  // computed for its flags only
    spec.ops.back().output = true;
    part.results.push_back(last);
  }
  for (int v : part.inputs) {
    spec.inputs.push_back(v < 0 ? spec_.inputs[~v] : SegmentInput{InputKind::kArray, spec_.ops[v].result, spec_.ops[v].rank});
  }
  part.runner = SegmentRunner::make(spec);
  return part;
}

bool SplitSegment::is_in_order(const std::vector<Part>& parts) {
  std::vector<int> there;
  for (const Part& part : parts) {
    for (int v : part.inputs)
      if (v >= 0 && std::find(there.begin(), there.end(), v) == there.end()) return false;
    there.insert(there.end(), part.results.begin(), part.results.end());
  }
  return true;
}

void SplitSegment::find_dead(std::vector<Part>* parts) const {
  std::vector<bool> read(spec_.ops.size());
  for (size_t i = 0; i < read.size(); ++i) read[i] = spec_.ops[i].output;
  for (auto part = parts->rbegin(); part != parts->rend(); ++part) {
    const auto dies = [&](int v) {
      if (v >= 0 && !read[v]) read[v] = true, part->dead.push_back(v);
    };
    std::for_each(part->inputs.begin(), part->inputs.end(), dies);
    std::for_each(part->results.begin(), part->results.end(), dies);
  }
}

SplitSegment::Split& SplitSegment::find(const std::vector<int>& shape_numbers) {
  for (auto& s : splits_) {
    if (s->shape_numbers == shape_numbers) return *s;
  }
  auto made = std::make_unique<Split>();
  made->shape_numbers = shape_numbers;
  const int count = shape_numbers.empty() ? 0 : 1 + *std::max_element(shape_numbers.begin(), shape_numbers.end());
  if (count > 1 && splits_.size() < kMaxSplits) {
    for (int n = 0; n < count; ++n) made->parts.push_back(make_part(shape_numbers, n));
    // In the order that eager has, if one part need not wait for another then: what dies early is not there when others are made.
    const auto eagers = [](const Part& a, const Part& b) { return a.first < b.first; };
    const auto numbered = [&](const Part& a, const Part& b) { return shape_numbers[a.first] < shape_numbers[b.first]; };
    std::sort(made->parts.begin(), made->parts.end(), eagers);
    if (!is_in_order(made->parts)) std::sort(made->parts.begin(), made->parts.end(), numbered);
    find_dead(&made->parts);
  }
  if (splits_.size() > kMaxSplits) splits_.pop_back();
  splits_.push_back(std::move(made));
  return *splits_.back();
}

RunResult SplitSegment::run(const std::vector<int>& shape_numbers, PyObject* const* inputs, PyObject** outputs) {
  Split& split = find(shape_numbers);
  RunResult result = split.parts.empty() ? RunResult::kMismatch : RunResult::kDone;
  std::vector<PyObject*> values(spec_.ops.size(), nullptr), in, out;
  for (Part& part : split.parts) {
    in.clear();
    for (int v : part.inputs) in.push_back(v < 0 ? inputs[~v] : values[v]);
    out.assign(part.results.size(), nullptr);
    result = part.runner ? part.runner->run(in.data(), out.data()) : RunResult::kMismatch;
    if (result != RunResult::kDone) break;
    for (size_t i = 0; i < out.size(); ++i) values[part.results[i]] = out[i];
    for (int v : part.dead) Py_CLEAR(values[v]);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (result == RunResult::kDone && spec_.ops[i].output) {
      *outputs++ = values[i];
    } else {
      Py_XDECREF(values[i]);
    }
  }
  return result;
}

void SplitSegment::kernels(std::vector<std::pair<std::string, std::string>>* out) const {
  for (const auto& split : splits_) {
    for (const Part& part : split->parts) {
      if (!part.runner) continue;
      for (auto& k : part.runner->kernels()) out->push_back(std::move(k));
    }
  }
}

}  // namespace dalsegno::replay
