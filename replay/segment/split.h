// A segment whose ops turn out to have different shapes, as parts that have one shape each: a row of coefficients is computed once,
// not again for every row it is broadcast to.
#pragma once
#include <Python.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "replay/segment/runner.h"

namespace dalsegno::replay {

class SplitSegment {
 public:
  // `spec` must outlive this object.
  explicit SplitSegment(const SegmentSpec& spec) : spec_(spec) {}

  // As SegmentRunner::run; shape_numbers: see segment_layout.h.
  RunResult run(const std::vector<int>& shape_numbers, PyObject* const* inputs, PyObject** outputs);
  void kernels(std::vector<std::pair<std::string, std::string>>* out) const;

 private:
  struct Part {
    std::unique_ptr<SegmentRunner> runner;  // null: some op of it has no rule
    std::vector<int> inputs;                // as operands of the spec's ops: op index, or ~input
    std::vector<int> results;               // ops whose values leave the part
    std::vector<int> dead;                  // ops whose values nobody reads behind it
    int first = -1;                         // op
  };
  struct Split {
    std::vector<int> shape_numbers;
    std::vector<Part> parts;
  };

  Split& find(const std::vector<int>& shape_numbers);
  Part make_part(const std::vector<int>& shape_numbers, int number) const;
  bool leaves(const std::vector<int>& shape_numbers, int op) const;
  void find_dead(std::vector<Part>* parts) const;
  static bool is_in_order(const std::vector<Part>& parts);

  const SegmentSpec& spec_;
  std::vector<std::unique_ptr<Split>> splits_;  // one per way the shapes have fallen so far
};

}  // namespace dalsegno::replay
