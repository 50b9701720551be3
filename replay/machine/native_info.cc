// What people are told of a region: how far it has come, its traces, and the ops that it leaves to steps.
#include <algorithm>

#include "replay/machine/native.h"

namespace dalsegno::replay {
namespace {

std::string state_text(const NativeCode& code) {
  switch (code.state.load(std::memory_order_acquire)) {
    case NativeCode::kWaiting:
      return "being compiled";
    case NativeCode::kReady:
      return "compiled";
    default:
      return code.failure.empty() ? "not compiled" : "not compiled: " + code.failure;
  }
}

}  // namespace

std::optional<NativeInfo> ProgramImpl::native_info() const {
  if (!native || !native->code) return {};
  using How = NativeInfo::How;
  const native::Region& region = native->code->region;
  NativeInfo info{state_text(*native->code), native::to_ir(region, native->code->layout, NativeCode::kSymbol), {}, {}};
  for (size_t k = 0; k < native->programs.size(); ++k) {
    const ProgramImpl& p = *native->programs[k];
    info.traces.push_back(p.data().number);
    for (size_t i = 0; i < region.blocks[k].instrs.size(); ++i) {
      const native::Instr& in = region.blocks[k].instrs[i];
      const Step& s = p.steps[i];
      if ((in.what != native::Do::kStep && in.what != native::Do::kEnd) || s.exit < 0) continue;
      const How how = in.what == native::Do::kEnd ? How::kLeaves : in.runs_code ? How::kRunsCode : How::kStep;
      info.called.push_back({how, p.data().number, p.plans[s.exit].op});
    }
  }
  std::sort(info.called.begin(), info.called.end());
  info.called.erase(std::unique(info.called.begin(), info.called.end()), info.called.end());
  return info;
}

}  // namespace dalsegno::replay
