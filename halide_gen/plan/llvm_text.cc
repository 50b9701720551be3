#include "halide_gen/plan/llvm_text.h"

#include <HalideRuntime.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <set>
#include <stdexcept>

#include "halide_gen/plan/expressions.h"
#include "halide_gen/plan/stage_values.h"

namespace dalsegno::halide_gen {
namespace {

template <class Whole>
std::string text_of(Whole i) {
  return std::to_string(i);
}

std::string element_type(const ValueType& t) {
  if (t.is_float()) return t.bits == 64 ? "double" : "float";
  return "i" + text_of(t.bits);
}

std::string vector_of(const std::string& element, int lanes) { return lanes == 1 ? element : "<" + text_of(lanes) + " x " + element + ">"; }

// LLVM writes floats of both sizes as the bits of a double.
std::string bits_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  char text[24];
  std::snprintf(text, sizeof text, "0x%016llX", static_cast<unsigned long long>(bits));
  return text;
}

// ---- expressions

// What an operation is called, of floats, of integers with a sign, and of those and bools without one.
struct Opcode {
  Node node;
  const char *of_float, *of_int, *of_uint;
  const char* of(const ValueType& t) const { return t.is_float() ? of_float : t.is_int() ? of_int : of_uint; }
};

constexpr Opcode kOpcodes[] = {
    {Node::kAdd, "fadd", "add", "add"},
    {Node::kSub, "fsub", "sub", "sub"},
    {Node::kMul, "fmul", "mul", "mul"},
    {Node::kDiv, "fdiv", nullptr, nullptr},
    {Node::kEq, "fcmp oeq", "icmp eq", "icmp eq"},
    {Node::kNe, "fcmp une", "icmp ne", "icmp ne"},
    {Node::kLt, "fcmp olt", "icmp slt", "icmp ult"},
    {Node::kLe, "fcmp ole", "icmp sle", "icmp ule"},
    {Node::kGt, "fcmp ogt", "icmp sgt", "icmp ugt"},
    {Node::kGe, "fcmp oge", "icmp sge", "icmp uge"},
    {Node::kAnd, nullptr, nullptr, "and"},
    {Node::kOr, nullptr, nullptr, "or"},
    {Node::kBitAnd, nullptr, "and", "and"},
    {Node::kBitOr, nullptr, "or", "or"},
    {Node::kBitXor, nullptr, "xor", "xor"},
    {Node::kShiftLeft, nullptr, "shl", "shl"},
    {Node::kShiftRight, nullptr, "ashr", "lshr"},
};

struct Function {
  Node node;
  const char* name;
};

constexpr Function kFunctions[] = {
    {Node::kSqrt, "sqrt"}, {Node::kFloor, "floor"}, {Node::kCeil, "ceil"}, {Node::kTrunc, "trunc"}, {Node::kRound, "roundeven"},
};

// Instructions for one turn of the innermost loop: a vector of elements, or one.
class Turn : StageValues {
 public:
  // Where the stage's operands are: reads[k], then writes. All that is named here is defined before the loop.
  struct Place {
    std::string pointer;  // of the row; of a number or what does not move: its value, as often as there are lanes
    std::string stride;   // in bytes, where elements are apart
  };

  Turn(const KernelSpec& spec, const Stage& stage, const std::vector<Place>& places, int lanes, std::string* out,
       std::set<std::string>* declared)
      : StageValues(spec, stage), places_(places), lanes_(lanes), out_(*out), declared_(*declared) {}

  // `at`: the first element's number.
  void write(const std::string& at) {
    at_ = at;
    find_values();
    for (size_t k = 0; k < stage_.results.size(); ++k) {
      const Expr value = stored(stage_.results[k]);
      const std::string computed = text(value), to = address(reads() + k, value.type());
      out_ += " store " + type(value.type()) + " " + computed + ", ptr " + to + aligned(value.type()) + "\n";
    }
  }

 private:
  Expr source(size_t k) override {
    const std::string name = "source_" + text_of(k);
    const ValueType t = memory_type(dtype(k));
    names_[name] = is_scalar(k) || inner(k) == Inner::kBroadcast ? places_[k].pointer : loaded(k, t);
    return variable(t, name);
  }

  Expr bind(int, const std::string& name, const Expr& value) override {
    names_[name] = text(value);
    return variable(value.type(), name);
  }

  std::string address(size_t i, const ValueType& t) {
    return value_of("getelementptr " + element_type(t) + ", ptr " + places_[i].pointer + ", i64 " + at_);
  }

  std::string loaded(size_t k, const ValueType& t) {
    const Place& place = places_[k];
    if (place.stride.empty()) return value_of("load " + type(t) + ", ptr " + address(k, t) + aligned(t));
    std::string from = value_of("getelementptr i8, ptr " + place.pointer + ", i64 " + value_of("mul i64 " + at_ + ", " + place.stride));
    std::string all = "poison";
    for (int lane = 0; lane < lanes_; ++lane) {
      if (lane > 0) from = value_of("getelementptr i8, ptr " + from + ", i64 " + place.stride);
      const std::string one = element_type(t) + " " + value_of("load " + element_type(t) + ", ptr " + from + aligned(t));
      if (lanes_ == 1) return one.substr(one.find('%'));
      all = value_of("insertelement " + type(t) + " " + all + ", " + one + ", i64 " + text_of(lane));
    }
    return all;
  }

  std::string type(const ValueType& t) const { return vector_of(element_type(t), lanes_); }
  static std::string aligned(const ValueType& t) { return ", align " + text_of(t.bytes()); }

  std::string value_of(const std::string& instruction) {
    const std::string name = "%v" + text_of(lanes_) + "_" + text_of(next_++);
    out_ += " " + name + " = " + instruction + "\n";
    return name;
  }

  // The value's name. An expression that occurs twice is computed once.
  std::string text(const Expr& e) {
    if (e->node == Node::kVariable) return names_.at(e->name);
    if (e->node == Node::kNumber) return constant(*e);
    const auto known = written_.find(&*e);
    if (known != written_.end()) return known->second;
    kept_.push_back(e);
    return written_[&*e] = value_of(instruction(*e));
  }

  std::string constant(const Expr::Data& e) const {
    const std::string one = e.type.is_float() ? bits_of(e.real) : e.type.is_bool() ? e.whole ? "true" : "false" : text_of(e.whole);
    return in_all_lanes(element_type(e.type), one);
  }

  std::string in_all_lanes(const std::string& element, const std::string& value) const {
    if (lanes_ == 1) return value;
    std::string all;
    for (int i = 0; i < lanes_; ++i) all += (i ? ", " : "<") + element + " " + value;
    return all + ">";
  }

  std::string typed(const Expr& e) { return type(e.type()) + " " + text(e); }

  std::string instruction(const Expr::Data& e) {
    const std::vector<Expr>& x = e.operands;
    switch (e.node) {
      case Node::kSelect: {
        const std::string condition = typed(x[0]), yes = typed(x[1]);
        return "select " + condition + ", " + yes + ", " + typed(x[2]);
      }
      case Node::kConvert:
        return conversion(x[0], e.type);
      case Node::kReinterpret:
        return "bitcast " + typed(x[0]) + " to " + type(e.type);
      case Node::kNot:
      case Node::kBitNot:
        return "xor " + typed(x[0]) + ", " + in_all_lanes(element_type(e.type), e.type.is_bool() ? "true" : "-1");
      case Node::kQuietLt:
        return quiet_comparison("olt", e);
      case Node::kQuietLe:
        return quiet_comparison("ole", e);
      case Node::kIsNan:
        return "fcmp uno " + typed(x[0]) + ", " + text(x[0]);
      default:
        return x.size() == 1 ? call(e) : operation(e);
    }
  }

  // LLVM's other comparisons leave open whether they raise "invalid".
  std::string quiet_comparison(const std::string& how, const Expr::Data& e) {
    const std::string t = type(e.operands[0].type()), name = "@llvm.experimental.constrained.fcmp." + suffix(e.operands[0].type());
    declared_.insert("declare " + type(e.type) + " " + name + "(" + t + ", " + t + ", metadata, metadata)\n");
    const std::string left = typed(e.operands[0]);
    return "call " + type(e.type) + " " + name + "(" + left + ", " + typed(e.operands[1]) + ", metadata !\"" + how +
           "\", metadata !\"fpexcept.strict\")";
  }

  std::string suffix(const ValueType& t) const { return (lanes_ > 1 ? "v" + text_of(lanes_) : "") + "f" + text_of(t.bits); }

  std::string operation(const Expr::Data& e) {
    const Expr &a = e.operands[0], &b = e.operands[1];
    for (const Opcode& known : kOpcodes) {
      if (known.node != e.node || !known.of(a.type())) continue;
      const std::string left = typed(a);
      return std::string(known.of(a.type())) + " " + left + ", " + text(b);
    }
    throw std::logic_error("an operation on what it is not for");
  }

  std::string call(const Expr::Data& e) {
    for (const Function& known : kFunctions) {
      if (known.node != e.node) continue;
      const std::string t = type(e.type), name = std::string("@llvm.") + known.name + "." + suffix(e.type);
      declared_.insert("declare " + t + " " + name + "(" + t + ")\n");
      return "call " + t + " " + name + "(" + typed(e.operands[0]) + ")";
    }
    throw std::logic_error("a function that is not known");
  }

  std::string conversion(const Expr& x, const ValueType& to) {
    const ValueType from = x.type();
    if (to.is_bool()) return std::string(from.is_float() ? "fcmp une " : "icmp ne ") + typed(x) + ", " + constant(*number(from, 0));
    const char* opcode = to.is_float() && from.is_float() ? to.bits > from.bits   ? "fpext"
                                                            : to.bits < from.bits ? "fptrunc"
                                                                                  : "bitcast"
                         : to.is_float()                  ? from.is_int() ? "sitofp" : "uitofp"
                         : from.is_float()                ? to.is_int() ? "fptosi" : "fptoui"
                         : to.bits < from.bits            ? "trunc"
                         : to.bits == from.bits           ? "bitcast"
                         : from.is_int()                  ? "sext"
                                                          : "zext";
    return std::string(opcode) + " " + typed(x) + " to " + type(to);
  }

  const std::vector<Place>& places_;
  const int lanes_;
  std::string& out_;
  std::set<std::string>& declared_;
  std::string at_;
  std::map<std::string, std::string> names_;  // of variables
  std::map<const Expr::Data*, std::string> written_;
  std::vector<Expr> kept_;  // whose addresses are keys
  int next_ = 0;
};

// ---- loops

// The axes of the iteration are counted from the innermost one. Loops over the outer ones move pointers to rows.
class StageText : StageShape {
 public:
  StageText(const KernelSpec& spec, const Stage& stage, int rank) : StageShape(spec, stage), rank_(rank) {}

  std::string write(const std::string& name, std::set<std::string>* declared) {
    out_ = "define i32 @" + name + "(ptr %arguments) #0 {\nentry:\n";
    std::vector<std::string> rows(operands());
    for (size_t i = 0; i < operands(); ++i) rows[i] = opened(i);
    find_extents();
    enter_loops(&rows);
    write_row(rows, declared);
    leave_loops();
    return out_ + "done:\n ret i32 0\n}\n";
  }

 private:
  ValueType type_of(size_t i) const { return memory_type(dtype(i)); }
  void line(const std::string& text) { out_ += " " + text + "\n"; }
  void label(const std::string& name) { out_ += name + ":\n"; }
  std::string named(const std::string& name, const std::string& instruction) {
    line("%" + name + " = " + instruction);
    return "%" + name;
  }
  std::string field(const std::string& name, const std::string& of, size_t offset, const std::string& type) {
    const std::string address = named(name + "_at", "getelementptr i8, ptr " + of + ", i64 " + text_of(offset));
    return named(name, "load " + type + ", ptr " + address);
  }
  std::string dimension(const std::string& name, size_t i, int axis, size_t offset) {
    const size_t at = static_cast<size_t>(axis) * sizeof(halide_dimension_t) + offset;
    return named(name, "sext i32 " + field(name + "_narrow", "%axes" + text_of(i), at, "i32") + " to i64");
  }

  // Where the operand begins; of a number, its value. Its strides are in bytes.
  std::string opened(size_t i) {
    const std::string k = text_of(i);
    const std::string argument = field("argument" + k, "%arguments", i * sizeof(void*), "ptr");
    if (is_scalar(i)) return named("number" + k, "load " + element_type(type_of(i)) + ", ptr " + argument);
    field("axes" + k, argument, offsetof(halide_buffer_t, dim), "ptr");
    const int first = inner(i) == Inner::kStrided ? 0 : 1;
    for (int axis = first; axis < rank_; ++axis) {
      const std::string name = stride(i, axis);
      named(name,
            "mul i64 " + dimension(name + "_elements", i, axis, offsetof(halide_dimension_t, stride)) + ", " + text_of(type_of(i).bytes()));
    }
    return field("host" + k, argument, offsetof(halide_buffer_t, host), "ptr");
  }

  static std::string stride(size_t i, int axis) { return "stride" + text_of(i) + "_" + text_of(axis); }

  void find_extents() {
    for (int axis = 0; axis < rank_; ++axis) {
      const std::string extent = dimension("extent" + text_of(axis), reads(), axis, offsetof(halide_dimension_t, extent));
      named("some" + text_of(axis), "icmp sgt i64 " + extent + ", 0");
      line("br i1 %some" + text_of(axis) + ", label %known" + text_of(axis) + ", label %done");
      label("known" + text_of(axis));
    }
    named("wide", "icmp sge i64 %extent0, " + text_of(lanes()));
    named("last", "sub i64 %extent0, " + text_of(lanes()));
  }

  void enter_loops(std::vector<std::string>* rows) {
    std::string before = "known" + text_of(rank_ - 1);
    for (int axis = rank_ - 1; axis > 0; --axis) {
      const std::string a = text_of(axis);
      line("br label %axis" + a);
      label("axis" + a);
      named("at" + a, "phi i64 [0, %" + before + "], [%next" + a + ", %behind" + a + "]");
      for (size_t i = 0; i < operands(); ++i) {
        if (is_scalar(i)) continue;
        const std::string name = "row" + text_of(i) + "_" + a;
        (*rows)[i] = named(name, "phi ptr [" + (*rows)[i] + ", %" + before + "], [%" + name + "_next, %behind" + a + "]");
      }
      before = "axis" + a;
    }
  }

  void leave_loops() {
    for (int axis = 1; axis < rank_; ++axis) {
      const std::string a = text_of(axis);
      label("behind" + a);
      for (size_t i = 0; i < operands(); ++i) {
        const std::string name = "row" + text_of(i) + "_" + a;
        if (!is_scalar(i)) named(name + "_next", "getelementptr i8, ptr %" + name + ", i64 %" + stride(i, axis));
      }
      named("next" + a, "add i64 %at" + a + ", 1");
      named("more" + a, "icmp slt i64 %next" + a + ", %extent" + a);
      line("br i1 %more" + a + ", label %axis" + a + ", label %" + (axis + 1 < rank_ ? "behind" + text_of(axis + 1) : "done"));
    }
  }

  // Whole vectors, the last one shifted inwards: a masked tail would compute in padding, and raise flags there. What is shorter than a
  // vector is done element by element.
  void write_row(const std::vector<std::string>& rows, std::set<std::string>* declared) {
    std::vector<Turn::Place> single(operands()), several(operands());
    for (size_t i = 0; i < operands(); ++i) {
      single[i].pointer = rows[i];
      const bool still = is_scalar(i) || inner(i) == Inner::kBroadcast;
      if (still && !is_scalar(i)) single[i].pointer = named("still" + text_of(i), "load " + element_type(type_of(i)) + ", ptr " + rows[i]);
      if (inner(i) == Inner::kStrided) single[i].stride = "%" + stride(i, 0);
      several[i] = single[i];
      if (still) several[i].pointer = in_all_lanes(i, single[i].pointer);
    }
    const std::string behind = rank_ > 1 ? "behind1" : "done", from = rank_ > 1 ? "axis1" : "known0";
    line("br i1 %wide, label %vectors, label %elements");
    const auto loop = [&](const std::string& name, int step, const std::vector<Turn::Place>& places) {
      label(name);
      named(name + "_at", "phi i64 [0, %" + from + "], [%" + name + "_next, %" + name + "]");
      if (step > 1) {
        declared->insert("declare i64 @llvm.smin.i64(i64, i64)\n");
        named(name + "_here", "call i64 @llvm.smin.i64(i64 %" + name + "_at, i64 %last)");
      }
      Turn(spec_, stage_, places, step, &out_, declared).write("%" + name + (step > 1 ? "_here" : "_at"));
      named(name + "_next", "add i64 %" + name + "_at, " + text_of(step));
      named(name + "_more", "icmp slt i64 %" + name + "_next, %extent0");
      line("br i1 %" + name + "_more, label %" + name + ", label %" + behind);
    };
    loop("vectors", lanes(), several);
    loop("elements", 1, single);
  }

  std::string in_all_lanes(size_t i, const std::string& value) {
    const std::string element = element_type(type_of(i)), all = vector_of(element, lanes()), k = text_of(i);
    named("first" + k, "insertelement " + all + " poison, " + element + " " + value + ", i64 0");
    return named("lanes" + k,
                 "shufflevector " + all + " %first" + k + ", " + all + " poison, " + vector_of("i32", lanes()) + " zeroinitializer");
  }

  const int rank_;
  std::string out_;
};

std::string written(const KernelSpec& spec, const std::string& symbol) {
  const Plan plan = make_plan(spec);
  std::set<std::string> declared;
  std::string out;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    if (plan.stages[s].loop_op >= 0) continue;
    const int rank = plan.tile == 0 ? spec.rank : 1;
    out += StageText(spec, plan.stages[s], rank).write(symbol + "_" + std::to_string(s) + "_argv", &declared);
  }
  for (const std::string& one : declared) out += one;
  return out + "attributes #0 = { nounwind \"prefer-vector-width\"=\"512\" }\n";
}

}  // namespace

bool to_llvm(const std::string& text, std::string* ir, std::string* error) {
  KernelSpec spec;
  if (!from_text(text, &spec, error)) return false;
  try {
    *ir = written(spec, kernel_symbol(text));
    return true;
  } catch (const std::exception& e) {
    *error = e.what();
    return false;
  }
}

}  // namespace dalsegno::halide_gen
