// For tests: a trace made by hand, and what is known of its objects.
#pragma once
#include <vector>

#include "replay/typed/typed_trace.h"

namespace dalsegno::typed {

// A trace by hand. Objects: 0 the function, then what object() adds.
class Hand {
 public:
  Trace trace;
  Knowledge known;

  Hand() {
    object({});
    trace.snapshots.add(frames({}));
  }

  int32_t object(ObjectFacts facts) {
    trace.objects.emplace_back();
    known.objects.push_back(facts);
    return static_cast<int32_t>(trace.objects.size()) - 1;
  }
  int32_t type(Type type) { return object({.names = type}); }
  ValueId add(OpKind kind, const std::vector<ValueId>& inputs, int32_t imm = 0, int32_t object = -1) {
    Op op;
    op.kind = kind;
    op.imm = imm;
    op.object = object;
    op.snapshot = 0;
    op.first_input = static_cast<int32_t>(trace.inputs.size());
    op.n_inputs = static_cast<int32_t>(inputs.size());
    trace.inputs.insert(trace.inputs.end(), inputs.begin(), inputs.end());
    trace.ops.push_back(op);
    return static_cast<ValueId>(trace.ops.size()) - 1;
  }
  ValueId param() { return add(OpKind::param, {}, trace.n_params++); }
  ValueId constant(Type type, int64_t bits) {
    return add(OpKind::constant, {}, 0, object({.type = type, .number = true, .unboxes = true, .bits = bits}));
  }
  ValueId binary(BinaryOp op, ValueId a, ValueId b) { return add(OpKind::binary, {a, b}, static_cast<int32_t>(op)); }
  void guard(ValueId v, Type of) { add(OpKind::guard_type, {v}, 0, type(of)); }
  TypedTrace typed() const { return infer(trace, known); }

  static Snapshot frames(const std::vector<ValueId>& locals) {
    SnapshotFrame frame;
    frame.function = 0;
    frame.code = 0;
    frame.locals = locals;
    return {{frame}};
  }
};

}  // namespace dalsegno::typed
