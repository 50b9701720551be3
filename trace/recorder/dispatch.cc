// Instruction -> handler.
#include "trace/recorder/recorder.h"

namespace dalsegno::recorder {

const Recorder::Handler* Recorder::handlers() {
  static const Handler table[] = {&Recorder::not_recorded,
#define X(name) &Recorder::on_##name,
                                  DALSEGNO_INSTRUCTIONS(X)
#undef X
  };
  return table;
}

}  // namespace dalsegno::recorder
