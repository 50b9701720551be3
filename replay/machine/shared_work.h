// Work that several threads share.
#pragma once
#include <Python.h>

#include "halide_gen/runtime/launch.h"
#include "hook/hook.h"
#include "replay/kernels/table.h"

namespace dalsegno::replay {

// part(0) to part(parts - 1), each once, on any of our threads, without the GIL, which is let go of meanwhile. The flags that came up in
// any of them. Where there is no launcher(), nothing is done: ask before.
template <class Part>
int share(int parts, const Part& part) {
  const auto take = [](void* context, int32_t number, char* const*, int) { (*static_cast<const Part*>(context))(number); };
  const rt::Pieces pieces{parts, 0, nullptr, 0, 0, take, const_cast<Part*>(&part)};
  rt::Launch launch{};
  launch.threads = launch_threads(), launch.pieces = &pieces;
  PyThreadState* state = PyEval_SaveThread();
  const int raised = launcher()(nullptr, &launch);
  const hook::ThreadGuard guard;
  PyEval_RestoreThread(state);
  return raised;
}

}  // namespace dalsegno::replay
