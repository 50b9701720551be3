// A call that the interpreter runs, seen by its tree: what is recorded of it, and the loops it may enter while it runs.
#pragma once
#include <memory>
#include <optional>

#include "replay/tree.h"

namespace dalsegno::replay {

// One per call that the interpreter runs, or goes on with. Where its frame comes to the head of a loop of which there is a trace, the trace
// runs in that very frame (hook::RunningFrame), until it leaves; what leaves often is recorded there. Needs the GIL.
class Tree::InFrame final : public hook::LoopWaiter {
 public:
  explicit InFrame(Tree& tree) : LoopWaiter(reinterpret_cast<PyCodeObject*>(tree.code_)), tree_(tree) {}
  ~InFrame() {
    hook::stop_if_ended();
    take_over();
    stop_waiting();
  }

  // Begins to record the call that follows, or what follows an exit. Not kOk: nothing is recorded.
  hook::WatchStatus record_entry(PyFunctionObject* function);
  bool record_exit(Exit* exit, FrameState* state, const GilShared<Programs>& ran);
  // The frames are known (hook::OnEntered).
  static void entered(void* self, int index, void* frame);
  // Ends the recording, if there is one, and installs what it has yielded.
  void take_over();
  bool abandoned() const { return abandoned_; }  // the recording
  bool looped() const { return looped_; }        // a loop was entered

 private:
  void* frame() const override { return frame_ ? frame_ : recording_ ? recording_->recorder.outermost() : nullptr; }
  bool at_loop(hook::RunningFrame& frame) noexcept override;
  bool may_enter() const;
  // Nothing is recorded of this loop yet, or not for values of these types: it is recorded from here on.
  void record_loop(const hook::FrameView& view);
  bool try_loops(hook::RunningFrame& frame);
  // So many steps of a loop were done: is it worth entering?
  void judge(const Program& loop, uint64_t steps);
  // After that run the frame goes on. False: an exception is set.
  bool go_on(hook::RunningFrame& frame, Exit* exit, FrameState* state, const GilShared<Programs>& ran);

  struct Recording {
    Recording(PyFunctionObject* function, recorder::Options options) : recorder(function, std::move(options)) {}
    recorder::Recorder recorder;
    Exit* exit = nullptr;     // where it began; null and
    int loop = -1;            // offset of the loop's head; -1: at the entry
    GilShared<Programs> ran;  // those the exit belongs to
    int codes = 0;
  };
  template <class Begin>
  hook::WatchStatus begin(PyFunctionObject* function, Exit* exit, const GilShared<Programs>& ran, Begin&& begin);

  Tree& tree_;
  void* frame_ = nullptr;
  std::optional<Recording> recording_;
  bool abandoned_ = false;
  bool looped_ = false;
  int idle_ = 0;  // times in a row that no loop was entered
};

}  // namespace dalsegno::replay
