// Complex numbers: pairs of doubles. What has a NaN in it is the step's (which of two an instruction gives is the compiler's choice).
#include <bit>
#include <cmath>

#include "replay/native/writer.h"
#include "trace/fault.h"
#include "trace/trace.h"

namespace dalsegno::native {

std::string Writer::part(const std::string& value, int index) {
  return op("extractelement <2 x double> " + value + ", i64 " + std::to_string(index));
}

std::string Writer::of_parts(const std::string& real, const std::string& imag) {
  const std::string half = op("insertelement <2 x double> zeroinitializer, double " + real + ", i64 0");
  return imag == "0.0" ? half : op("insertelement <2 x double> " + half + ", double " + imag + ", i64 1");
}

// Of a pair of truth values.
std::string Writer::both(const std::string& pair) {
  return op("and i1 " + op("extractelement <2 x i1> " + pair + ", i64 0") + ", " + op("extractelement <2 x i1> " + pair + ", i64 1"));
}

std::string Writer::product(const std::string& a, const std::string& b) {
  const auto of = [&](int i, int k) { return op("fmul double " + part(a, i) + ", " + part(b, k)); };
  return of_parts(op("fsub double " + of(0, 0) + ", " + of(1, 1)), op("fadd double " + of(0, 1) + ", " + of(1, 0)));
}

// By a small constant, as c_powu() does it; "": by no such power.
std::string Writer::natural_power(const Instr& in, std::string x) {
  constexpr int64_t kMost = 8;
  if (static_cast<BinaryOp>(in.imm) != BinaryOp::power || !constant(key_of(in.b)) || in.n != 0) return "";
  const Constant by = constant_of(key_of(in.b));
  const auto exponent = std::bit_cast<double>(by.bits);
  if (by.imag != 0 || exponent != std::floor(exponent) || exponent < 1 || exponent > kMost) return "";
  std::string out = "<double 1.0, double 0.0>";
  for (auto n = static_cast<int64_t>(exponent); n != 0; n >>= 1) {
    if (n & 1) out = product(out, x);
    if (n > 1) x = product(x, x);
  }
  return out;
}

// As Objects/complexobject.c has them.
void Writer::complex_binary(const Instr& in) {
  const std::string a = get(in.a), b = get(in.b);
  std::string out = natural_power(in, a);
  if (!out.empty()) {
    set(in.dst, out);
    return unless(both(op("fcmp olt <2 x double> " + op("call <2 x double> @llvm.fabs.v2f64(<2 x double> " + out + ")") +
                          ", <double 0x7FF0000000000000, double 0x7FF0000000000000>")),
                  in);
  }
  if (in.object >= 0) {
    const std::string done = op("call i32 " + address(kAddresses + in.object) + "(double " + part(a, 0) + ", double " + part(a, 1) +
                                ", double " + part(b, 0) + ", double " + part(b, 1) + ", ptr %out)");
    refused_.insert(number_);
    guard(op("icmp ne i32 " + done + ", 0"));
    return set(in.dst, op("load <2 x double>, ptr %out"));
  }
  if (in.real != typed::Real::kNeither) return beside_real(in);
  switch (static_cast<BinaryOp>(in.imm)) {
    case BinaryOp::add:
      out = op("fadd <2 x double> " + a + ", " + b);
      break;
    case BinaryOp::subtract:
      out = op("fsub <2 x double> " + a + ", " + b);
      break;
    case BinaryOp::multiply:
      out = product(a, b);
      break;
    default:
      return by_step(in);
  }
  set(in.dst, out);
  unless(op("fcmp ord double " + part(out, 0) + ", " + part(out, 1)), in);
}

// One operand is a real number, and stands in the real part.
void Writer::beside_real(const Instr& in) {
  const bool left = in.real == typed::Real::kLeft;
  const std::string a = get(in.a), b = get(in.b), pair = left ? b : a, number = part(left ? a : b, 0);
  const auto with_real = [&](const std::string& how, const std::string& imaginary) {
    return of_parts(op(how + " double " + part(a, 0) + ", " + part(b, 0)), imaginary);
  };
  const auto both_by = [&](const std::string& how) {
    const std::string twice = of_parts(number, number);
    return op(how + " <2 x double> " + pair + ", " + twice);
  };
  std::string out, holds = "true";
  switch (static_cast<BinaryOp>(in.imm)) {
    case BinaryOp::add:
      out = with_real("fadd", part(pair, 1));
      break;
    case BinaryOp::subtract:
      out = with_real("fsub", left ? op("fneg double " + part(pair, 1)) : part(pair, 1));
      break;
    case BinaryOp::multiply:
      out = both_by("fmul");
      break;
    case BinaryOp::true_divide:
      out = both_by("fdiv");
      holds = op("fcmp une double " + number + ", 0.0");
      break;
    default:
      return by_step(in);
  }
  set(in.dst, out);
  unless(op("and i1 " + holds + ", " + op("fcmp ord double " + part(out, 0) + ", " + part(out, 1))), in);
}

void Writer::complex_compare(const Instr& in) {
  constexpr int32_t kUnequal = 3;  // Py_NE
  const std::string equal = both(op("fcmp oeq <2 x double> " + get(in.a) + ", " + get(in.b)));
  set(in.dst, truth_of(in.imm == kUnequal ? op("xor i1 " + equal + ", true") : equal));
}

void Writer::complex_call(const Instr& in) {
  using typed::Callee;
  const std::string a = get(in.list[0]);
  switch (in.callee) {
    case Callee::kComplex:
      if (typed::is_pair(in.rep)) return set(in.dst, a);
      return set(in.dst, of_parts(a, in.list.size() > 1 ? get(in.list[1]) : "0.0"));
    case Callee::kReal:
      return set(in.dst, part(a, 0));
    case Callee::kImag:
      return set(in.dst, part(a, planted(Fault::native_parts) ? 0 : 1));
    case Callee::kConjugate:
    case Callee::kScalarConjugate:
      return set(in.dst, of_parts(part(a, 0), op("fneg double " + part(a, 1))));
    case Callee::kScalar:
      return set(in.dst, a);
    case Callee::kAbs:
      if (in.rep == Rep::kNpComplex128)  // (which looks at no flags)
        return set(in.dst, op("call double " + address(kAddresses + in.object) + "(double " + part(a, 0) + ", double " + part(a, 1) + ")"));
      [[fallthrough]];
    default:
      return in.object >= 0 ? c_function(in) : by_step(in);
  }
}

}  // namespace dalsegno::native
