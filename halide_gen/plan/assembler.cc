#include "halide_gen/plan/assembler.h"

#include <xbyak/xbyak.h>

#include <exception>
#include <vector>

#include "halide_gen/plan/avx2_code.h"
#include "halide_gen/plan/avx512_code.h"

namespace dalsegno::halide_gen {
namespace {

class Assembled final : public AssembledCode {
 public:
  Assembled(const KernelSpec& spec, const Plan& plan, Vectors by) : generator_(4096, Xbyak::AutoGrow) {
    std::vector<size_t> begins;
    for (const Stage& stage : plan.stages) {
      generator_.align(64);
      begins.push_back(generator_.getSize());
      if (stage.loop_op >= 0) continue;
      const int rank = plan.tile == 0 ? spec.rank : 1;
      by == Vectors::kAvx512 ? Avx512Code(spec, stage, rank, &generator_).write() : Avx2Code(spec, stage, rank, &generator_).write();
    }
    generator_.ready(Xbyak::CodeGenerator::PROTECT_RE);
    for (size_t i = 0; i < begins.size(); ++i)
      stages_.push_back(plan.stages[i].loop_op < 0 ? reinterpret_cast<Entry>(const_cast<uint8_t*>(generator_.getCode()) + begins[i])
                                                   : nullptr);
  }

  int (*stage(size_t i) const)(void**) override { return stages_[i]; }

 private:
  using Entry = int (*)(void**);
  Xbyak::CodeGenerator generator_;
  std::vector<Entry> stages_;
};

}  // namespace

Vectors processor_vectors() {
  // (By what the compiler's library knows by now: each question costs a virtual machine some ten microseconds.)
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("bmi2");
  return wide ? Vectors::kAvx512 : __builtin_cpu_supports("avx2") ? Vectors::kAvx2 : Vectors::kNone;
}

std::shared_ptr<const AssembledCode> assemble(const KernelSpec& spec, const Plan& plan, Vectors by) {
  if (by == Vectors::kNone) return nullptr;
  try {
    return std::make_shared<Assembled>(spec, plan, by);
  } catch (const std::exception&) {  // not covered, or no memory, or none for code
    return nullptr;
  }
}

}  // namespace dalsegno::halide_gen
