// Numbers.
#include <array>
#include <bit>
#include <string_view>

#include "replay/native/writer.h"
#include "trace/fault.h"
#include "trace/trace.h"

namespace dalsegno::native {

void Writer::binary(const Instr& in) {
  if (in.rep == Rep::kNpComplex128) return numpy_complex_binary(in);
  if (in.rep == Rep::kComplex) return complex_binary(in);
  if (bits_of(in.rep) == Bits::kInt64)
    integer(in, get(in.a), get(in.b));
  else
    floating(in, get(in.a), get(in.b));
}

void Writer::checked(const Instr& in, const char* name, const std::string& a, const std::string& b) {
  if (is_hoisted_sum()) return set(in.dst, op(std::string(name + 1) + " nsw i64 " + a + ", " + b));
  const std::string both = op(std::string("call {i64, i1} @llvm.") + name + ".with.overflow.i64(i64 " + a + ", i64 " + b + ")");
  refused_.insert(number_);
  if (!planted(Fault::native_overflow)) guard(op("extractvalue {i64, i1} " + both + ", 1"), false);
  set(in.dst, op("extractvalue {i64, i1} " + both + ", 0"));
}

// By the function of the step's.
void Writer::by_function(const Instr& in, const std::string& a, const std::string& b) {
  const std::string type = type_of(bits_of(in.rep));
  const std::string done = op("call i32 " + address(kAddresses + in.object) + "(" + type + " " + a + ", " + type + " " + b + ", ptr %out)");
  refused_.insert(number_);
  guard(op("icmp ne i32 " + done + ", 0"));
  set(in.dst, op("load " + type + ", ptr %out"));
}

// ---- integers of few bits: computed in 64, and then they fit or not ------------------------------------------------------------------

std::string Writer::cut(Rep rep, const std::string& value) {
  const Memory memory = memory_of(rep);
  if (!*memory.wider) return value;
  return op(std::string(memory.wider) + " " + memory.type + " " + op("trunc i64 " + value + " to " + memory.type) + " to i64");
}

void Writer::fit(const Instr& in, Rep rep, const std::string& value) {
  refused_.insert(number_);
  if (!planted(Fault::native_overflow)) guard(op("icmp eq i64 " + cut(rep, value) + ", " + value));
  set(in.dst, planted(Fault::native_overflow) ? cut(rep, value) : value);
}

// False: of as many bits as there are.
bool Writer::narrow(const Instr& in, const std::string& a, const std::string& b) {
  if (!typed::is_numpy_integer(in.rep) || typed::size_of_integer(in.rep) == 8) return false;
  const std::string ab = " i64 " + a + ", " + b, bits = std::to_string(8 * typed::size_of_integer(in.rep));
  switch (static_cast<BinaryOp>(in.imm)) {
    case BinaryOp::add:
      fit(in, in.rep, op("add" + ab));
      return true;
    case BinaryOp::subtract:
      fit(in, in.rep, op("sub" + ab));
      return true;
    case BinaryOp::multiply: {
      const std::string both = op("call {i64, i1} @llvm.smul.with.overflow.i64(i64 " + a + ", i64 " + b + ")");
      guard(op("extractvalue {i64, i1} " + both + ", 1"), false);
      fit(in, in.rep, op("extractvalue {i64, i1} " + both + ", 0"));
      return true;
    }
    case BinaryOp::lshift:
      guard(op("icmp ult i64 " + b + ", " + bits));
      set(in.dst, cut(in.rep, op("shl" + ab)));
      return true;
    case BinaryOp::rshift:
      guard(op("icmp ult i64 " + b + ", " + bits));
      set(in.dst, op("ashr" + ab));
      return true;
    default:
      return false;
  }
}

// Modulo 2**64; shifts by 0 to 63.
void Writer::modular(const Instr& in, const std::string& a, const std::string& b) {
  // In the order of BinaryOp: add and floor_divide lshift matmul multiply remainder or power rshift subtract true_divide xor
  static constexpr std::array<const char*, 13> kNames = {"add", "and", "", "shl", "", "mul", "", "or", "", "lshr", "sub", "", "xor"};
  set(in.dst, op(std::string(kNames.at(static_cast<size_t>(in.imm))) + " i64 " + a + ", " + b));
}

void Writer::integer(const Instr& in, const std::string& a, const std::string& b) {
  if (in.object >= 0) return by_function(in, a, b);
  if (typed::is_modular(in.rep)) return modular(in, a, b);
  if (narrow(in, a, b)) return;
  const std::string ab = " i64 " + a + ", " + b;
  switch (static_cast<BinaryOp>(in.imm)) {
    case BinaryOp::add:
      return checked(in, "sadd", a, b);
    case BinaryOp::subtract:
      return checked(in, "ssub", a, b);
    case BinaryOp::multiply:
      return checked(in, "smul", a, b);
    case BinaryOp::and_:
      return set(in.dst, op("and" + ab));
    case BinaryOp::or_:
      return set(in.dst, op("or" + ab));
    case BinaryOp::xor_:
      return set(in.dst, op("xor" + ab));
    case BinaryOp::lshift:
      return shift_left(in, a, b);
    case BinaryOp::rshift:
      guard(op("icmp ult i64 " + b + ", 64"));
      return set(in.dst, op("ashr" + ab));
    case BinaryOp::floor_divide:
      return floor_divide(in, a, b);
    case BinaryOp::remainder:
      return remainder(in, a, b);
    case BinaryOp::true_divide:
      return true_divide(in, a, b);
    default:
      return by_step(in);
  }
}

void Writer::shift_left(const Instr& in, const std::string& a, const std::string& b) {
  guard(op("icmp ult i64 " + b + ", 63"));
  const std::string out = op("shl i64 " + a + ", " + b);
  guard(op("icmp eq i64 " + op("ashr i64 " + out + ", " + b) + ", " + a));
  set(in.dst, out);
}

// Is the remainder not 0, and of another sign than the divisor?
std::string Writer::wraps(const std::string& rest, const std::string& b) {
  const std::string other = op("icmp slt i64 " + op("xor i64 " + rest + ", " + b) + ", 0");
  return op("and i1 " + op("icmp ne i64 " + rest + ", 0") + ", " + other);
}

// The power of two that the right operand always is, or -1.
int Writer::shift_of(const Instr& in) const {
  const int64_t* by = constant(key_of(in.b));
  return by && *by > 0 && std::has_single_bit(static_cast<uint64_t>(*by)) ? std::countr_zero(static_cast<uint64_t>(*by)) : -1;
}

void Writer::floor_divide(const Instr& in, const std::string& a, const std::string& b) {
  if (const int shift = shift_of(in); shift >= 0) return set(in.dst, op("ashr i64 " + a + ", " + std::to_string(shift)));
  divides(b);
  const std::string quotient = op("sdiv i64 " + a + ", " + b), rest = op("srem i64 " + a + ", " + b);
  set(in.dst, op("sub i64 " + quotient + ", " + truth_of(wraps(rest, b))));
}

// Where the left operand itself is the remainder the result may have to share its box (n: somebody may see that), but for ints of one
// digit: that is the step's.
void Writer::remainder(const Instr& in, const std::string& a, const std::string& b) {
  std::string out;
  if (const int shift = shift_of(in); shift >= 0) {
    out = op("and i64 " + a + ", " + std::to_string((int64_t{1} << shift) - 1));
  } else {
    divides(b);
    const std::string rest = op("srem i64 " + a + ", " + b);
    out = op("add i64 " + rest + ", " + op("select i1 " + wraps(rest, b) + ", i64 " + b + ", i64 0"));
  }
  set(in.dst, out);
  constexpr int64_t kDigit = int64_t{1} << 30;  // what is its own remainder is as small as the divisor
  const int64_t* by = constant(key_of(in.b));
  if (in.n == 0 || (by && -kDigit < *by && *by < kDigit)) return;
  const auto digit = [&](const std::string& x) { return op("icmp ult i64 " + op("add i64 " + x + ", 1073741823") + ", 2147483647"); };
  const std::string small = op("and i1 " + digit(a) + ", " + digit(b));
  unless(op("or i1 " + small + ", " + op("icmp ne i64 " + out + ", " + a)), in);
}

void Writer::true_divide(const Instr& in, const std::string& a, const std::string& b) {
  guard(op("icmp ne i64 " + b + ", 0"));
  for (const std::string& x : {a, b}) guard(op("icmp ult i64 " + op("add i64 " + x + ", 9007199254740992") + ", 18014398509481985"));
  set(in.dst, op("fdiv double " + op("sitofp i64 " + a + " to double") + ", " + op("sitofp i64 " + b + " to double")));
}

// Python's floats.
void Writer::floating(const Instr& in, const std::string& a, const std::string& b) {
  if (in.object >= 0) return power(in, a, b) ? void() : by_function(in, a, b);
  const std::string type = type_of(bits_of(in.rep)), ab = " " + type + " " + a + ", " + b;
  const char* name = nullptr;
  switch (static_cast<BinaryOp>(in.imm)) {
    case BinaryOp::add:
      name = "fadd";
      break;
    case BinaryOp::subtract:
      name = "fsub";
      break;
    case BinaryOp::multiply:
      name = "fmul";
      break;
    case BinaryOp::true_divide:
      name = "fdiv";
      break;
    default:
      return by_step(in);
  }
  const bool python = in.rep == Rep::kFloat, exact = name[1] == 'a' || name[1] == 's';
  if (python && !exact && name[1] == 'd') guard(op("fcmp une double " + b + ", 0.0"));
  const std::string out = op(name + ab);
  set(in.dst, out);
  if (python) return unless_scalar(op("fcmp ord double " + out + ", 0.0"), in, a, b);
  const std::string size = op("call " + type + " @llvm.fabs." + (type == "float" ? "f32" : "f64") + "(" + type + " " + out + ")");
  // Is it finite, and no underflow where that matters? (The least normal number may be what a smaller one was rounded to. Against infinity
  // LLVM would rather look at the bits.)
  const bool single = std::string_view(type) == "float";
  std::string plain = op("fcmp ole " + type + " " + size + (single ? ", 0x47EFFFFFE0000000" : ", 0x7FEFFFFFFFFFFFFF"));
  const char* least = single ? "0x3810000000000000" : "0x0010000000000000";
  if (!exact) plain = op("and i1 " + plain + ", " + op("fcmp ogt " + type + " " + size + ", " + least));
  const std::string rare = label("z"), done = label("j");
  branch(plain, done, rare, true);
  begin(rare);
  unless_scalar(is_passed_on(name, type, a, b, out), in, a, b);
  go(done);
  begin(done);
}

// Is the result 0 or infinite because an operand is? Then nothing has come up. (What is no number is another matter.)
std::string Writer::is_passed_on(const std::string& name, const std::string& type, const std::string& a, const std::string& b,
                                 const std::string& out) {
  const bool product = name == "fmul", quotient = name == "fdiv";
  const auto is_zero = [&](const std::string& x) { return op("fcmp oeq " + type + " " + x + ", 0.0"); };
  const auto is_infinite = [&](const std::string& x) {
    const std::string size = op("call " + type + " @llvm.fabs." + (type == "float" ? "f32" : "f64") + "(" + type + " " + x + ")");
    return op("fcmp oeq " + type + " " + size + ", 0x7FF0000000000000");
  };
  const auto either = [&](const std::string& x, const std::string& y) { return op("or i1 " + x + ", " + y); };
  const auto both = [&](const std::string& x, const std::string& y) { return op("and i1 " + x + ", " + y); };
  std::string infinite = both(is_infinite(out), quotient ? is_infinite(a) : either(is_infinite(a), is_infinite(b)));
  if (!product && !quotient) return infinite;
  return either(infinite, both(is_zero(out), either(is_zero(a), product ? is_zero(b) : is_infinite(b))));
}

void Writer::unary(const Instr& in) {
  const std::string a = get(in.a);
  if (bits_of(in.rep) != Bits::kInt64) return set(in.dst, op(std::string("fneg ") + type_of(bits_of(in.rep)) + " " + a));
  if (static_cast<UnaryOp>(in.imm) == UnaryOp::invert) return set(in.dst, cut(in.rep, op("xor i64 " + a + ", -1")));
  if (typed::is_numpy_integer(in.rep) && typed::size_of_integer(in.rep) < 8) return fit(in, in.rep, op("sub i64 0, " + a));
  if (in.rep == Rep::kWrapped) return set(in.dst, op("sub i64 0, " + a));
  checked(in, "ssub", "0", a);
}

std::string Writer::compared(const Instr& in) {
  static constexpr const char* kInt[] = {"slt", "sle", "eq", "ne", "sgt", "sge"};
  static constexpr const char* kFloat[] = {"olt", "ole", "oeq", "une", "ogt", "oge"};
  const Bits bits = bits_of(in.rep);
  const std::string ab = std::string(" ") + type_of(bits) + " " + get(in.a) + ", " + get(in.b);
  std::string bit = op((bits == Bits::kInt64 ? std::string("icmp ") + kInt[in.imm] : std::string("fcmp ") + kFloat[in.imm]) + ab);
  set(in.dst, truth_of(bit));
  return bit;
}

void Writer::compare(const Instr& in) {
  if (typed::is_pair(in.rep)) return complex_compare(in);
  const std::string bit = compared(in);
  if (in.what == Do::kGuardedCompare) guard(bit, in.n != 0, in.side);
}

void Writer::truth(const Instr& in) {
  const Bits bits = bits_of(in.rep);
  const std::string a = get(in.a);
  if (bits == Bits::kComplex)
    return set(in.dst, truth_of(op("xor i1 " + both(op("fcmp oeq <2 x double> " + a + ", zeroinitializer")) + ", true")));
  set(in.dst,
      truth_of(op(bits == Bits::kInt64 ? "icmp ne i64 " + a + ", 0" : std::string("fcmp une ") + type_of(bits) + " " + a + ", 0.0")));
}

// (Between 64 bits of either kind, the highest one must not be set.)
void Writer::convert_integer(const Instr& in, const std::string& a) {
  if (typed::size_of_integer(in.to) < 8) return fit(in, in.to, a);
  refused_.insert(number_);
  guard(op("icmp sge i64 " + a + ", 0"));
  set(in.dst, a);
}

void Writer::convert(const Instr& in) {
  const Bits from = bits_of(in.rep), to = bits_of(in.to);
  if (to == Bits::kComplex) {
    const std::string real = from == Bits::kInt64   ? op("sitofp i64 " + get(in.a) + " to double")
                             : from == Bits::kFloat ? op("fpext float " + get(in.a) + " to double")
                                                    : get(in.a);
    return set(in.dst, of_parts(real, "0.0"));
  }
  if (from == Bits::kInt64 && to == Bits::kDouble) return set(in.dst, op("sitofp i64 " + get(in.a) + " to double"));
  if (from == Bits::kFloat && to == Bits::kDouble) return set(in.dst, op("fpext float " + get(in.a) + " to double"));
  if (from == Bits::kInt64 && to == Bits::kInt64) return convert_integer(in, get(in.a));
  if (from == Bits::kDouble && to == Bits::kFloat) {
    // What is not finite is the step's, and of NumPy's doubles what may be too small.
    const std::string out = op("fptrunc double " + get(in.a) + " to float");
    const std::string size = op("call float @llvm.fabs.f32(float " + out + ")"),
                      finite = op("fcmp olt float " + size + ", 0x7FF0000000000000");
    set(in.dst, out);
    if (in.rep != Rep::kNpFloat64) return unless(finite, in);
    const std::string fits =
        op("or i1 " + op("fcmp ogt float " + size + ", 0x3810000000000000") + ", " + op("fcmp oeq double " + get(in.a) + ", 0.0"));
    return unless(op("and i1 " + finite + ", " + fits), in);
  }
  by_step(in);
}

void Writer::call(const Instr& in) {
  using typed::Callee;
  if (typed::is_pair(in.rep) || in.callee == Callee::kComplex) return complex_call(in);
  const Bits bits = bits_of(in.rep);
  const std::string a = get(in.list[0]), type = type_of(bits);
  const auto intrinsic = [&](const char* name) { return op(std::string("call double @llvm.") + name + ".f64(double " + a + ")"); };
  const auto test = [&](const std::string& condition) { set(in.dst, truth_of(op(condition))); };
  switch (in.callee) {
    case Callee::kMin:
    case Callee::kMax:
      return extreme(in, type, a);
    case Callee::kAbs:
      if (bits == Bits::kDouble) return set(in.dst, intrinsic("fabs"));
      if (bits == Bits::kFloat) return set(in.dst, op("call float @llvm.fabs.f32(float " + a + ")"));
      return absolute(in, a);
    case Callee::kFabs:
      return set(in.dst, intrinsic("fabs"));
    case Callee::kSqrt:
      guard(op("fcmp uge double " + a + ", 0.0"));
      set(in.dst, intrinsic("sqrt"));
      return unless(op("fcmp ord double " + a + ", 0.0"), in);
    case Callee::kInt:
      return bits == Bits::kDouble ? whole(in, intrinsic("trunc")) : same(in, a);
    case Callee::kBitLength: {
      const std::string size = op("call i64 @llvm.abs.i64(i64 " + a + ", i1 false)");
      return set(in.dst, op("sub i64 64, " + op("call i64 @llvm.ctlz.i64(i64 " + size + ", i1 false)")));
    }
    case Callee::kTrunc:
      return whole(in, intrinsic("trunc"));
    case Callee::kFloor:
      return whole(in, intrinsic("floor"));
    case Callee::kCeil:
      return whole(in, intrinsic("ceil"));
    case Callee::kFloat:
    case Callee::kScalar:
      return same(in, a);
    case Callee::kRound:
      return whole(in, intrinsic("rint"));
    case Callee::kClip:
      return clip(in, type, a);
    case Callee::kIsnan:
      return test("fcmp uno double " + a + ", 0.0");
    case Callee::kIsinf:
      return test("fcmp oeq double " + intrinsic("fabs") + ", 0x7FF0000000000000");
    case Callee::kIsfinite:
      return test("fcmp olt double " + intrinsic("fabs") + ", 0x7FF0000000000000");
    default:
      return in.object >= 0 ? c_function(in) : by_step(in);
  }
}

// Finite results of finite operands are what the callee gives; all else is the step's.
void Writer::c_function(const Instr& in) {
  using typed::Callee;
  const auto finite = [&](const std::string& x) {
    return op("fcmp olt double " + op("call double @llvm.fabs.f64(double " + x + ")") + ", 0x7FF0000000000000");
  };
  const bool logarithm = in.callee == Callee::kLog || in.callee == Callee::kLog2 || in.callee == Callee::kLog10;
  std::string arguments, plain;
  std::vector<std::string> operands;
  for (int32_t reg : in.list) {
    const std::string x = get(reg);
    if (in.rep == Rep::kComplex)
      operands.push_back(part(x, 0)), operands.push_back(part(x, 1));
    else
      operands.push_back(x);
  }
  for (const std::string& x : operands) {
    arguments += (arguments.empty() ? "double " : ", double ") + x;
    plain = plain.empty() ? finite(x) : op("and i1 " + plain + ", " + finite(x));
  }
  if (logarithm) plain = op("and i1 " + plain + ", " + op("fcmp ogt double " + get(in.list[0]) + ", 0.0"));
  if (in.callee == Callee::kAtan2) plain = op("and i1 " + plain + ", " + op("fcmp une double " + get(in.list[0]) + ", 0.0"));
  const std::string slow = label("s"), call = label("c"), join = label("j");
  branch(plain, call, slow, true);
  begin(call);
  const std::string out = op("call double " + address(kAddresses + in.object) + "(" + arguments + ")");
  set(in.dst, out);
  branch(finite(out), join, slow, true);
  slowly(in, slow, join);
}

// Between bounds of which none is NaN.
void Writer::clip(const Instr& in, const std::string& type, const std::string& a) {
  const std::string least = get(in.list[1]), most = get(in.list[2]);
  const bool whole = type == "i64";
  if (!whole) guard(op("fcmp ord double " + least + ", " + most));
  const auto chosen = [&](const char* how, const std::string& x, const std::string& bound) {
    return op("select i1 " + op(std::string(whole ? "icmp s" : "fcmp o") + how + " " + type + " " + x + ", " + bound) + ", " + type + " " +
              bound + ", " + type + " " + x);
  };
  set(in.dst, chosen("gt", chosen("lt", a, least), most));
}

// The first one stays unless another is less (greater): NaN never is.
void Writer::extreme(const Instr& in, const std::string& type, std::string found) {
  const bool largest = in.callee == typed::Callee::kMax, whole = type == "i64";
  const std::string how = whole ? (largest ? "icmp sgt " : "icmp slt ") : (largest ? "fcmp ogt " : "fcmp olt ");
  std::string object = object_of(in, 0);
  for (size_t k = 1; k < in.list.size(); ++k) {
    const std::string next = get(in.list[k]), better = op(how + type + " " + next + ", " + found);
    found = op("select i1 " + better + ", " + type + " " + next + ", " + type + " " + found);
    object = op("select i1 " + better + ", ptr " + object_of(in, k) + ", ptr " + object);
  }
  share(in, object, found);
  set(in.dst, found);
}

void Writer::absolute(const Instr& in, const std::string& a) {
  guard(op("icmp ne i64 " + a + ", -9223372036854775808"));
  const std::string negative = op("icmp slt i64 " + a + ", 0");
  share(in, op("select i1 " + negative + ", ptr null, ptr " + object_of(in, 0)), a);
  set(in.dst, op("select i1 " + negative + ", i64 " + op("sub i64 0, " + a) + ", i64 " + a));
}

// A number that is one already: the very object.
void Writer::same(const Instr& in, const std::string& a) {
  share(in, object_of(in, 0), a);
  set(in.dst, a);
}

void Writer::whole(const Instr& in, const std::string& value) {
  guard(op("fcmp oge double " + value + ", 0xC3E0000000000000"));
  guard(op("fcmp olt double " + value + ", 0x43E0000000000000"));
  set(in.dst, op("fptosi double " + value + " to i64"));
}

}  // namespace dalsegno::native
