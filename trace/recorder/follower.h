// The follower: makes sense of the interpreter's events (docs/hook.md). Each event says that an instruction is about to be done; which one
// that is, of which frame, tells what became of the instruction before it: it is done, a branch was taken, a frame was entered or left, or
// it raised. It knows frames and instructions, but nothing of values or of traces: that is its heir's business (recorder.h).
#pragma once
#include <Python.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "hook/hook.h"
#include "trace/reasons.h"
#include "trace/recorder/instructions.h"

namespace dalsegno::recorder {

// A frame of the interpreter that is followed.
struct Frame {
  std::shared_ptr<const CodeInfo> code;
  PyFunctionObject* live = nullptr;  // borrowed; valid while the frame runs
  const Instr* call = nullptr;       // the call that the frame inside this one serves
  void* id = nullptr;                // null: it has not begun yet
};

class Follower : public hook::Watcher {
 public:
  ~Follower() override { stop(); }
  // A frame rebuilt where a trace was left has this id.
  void entered(int index, void* frame_id);
  // Adds the code objects of all frames to the watch. False if one cannot be watched.
  bool watch();
  bool active() const { return following_; }
  // The outermost frame; null: it has not begun yet.
  void* outermost() const { return frames_.empty() ? nullptr : frames_.front().id; }
  void before(const hook::FrameView& view) noexcept final;

 protected:
  // ---- what the events come to
  virtual void begins(const Instr& instr) = 0;                   // it is about to be done
  virtual void is_done() = 0;                                    // pending() is, and no frame was entered or left
  virtual void has_entered(const hook::FrameView& view) = 0;     // pending() has entered the frame that was expected, now frame()
  virtual void has_left(const Instr& call) = 0;                  // pending() has left to frame(), which had made this call
  virtual void has_ended(Reason reason) = 0;                     // pending() raised, or the events make no sense
  virtual void runs_elsewhere(const hook::FrameView& view) = 0;  // what is not followed: an opaque step's code, a finaliser, a handler

  // ---- what the instruction that begins may come to: begins() says so. At first: to the next one
  void may_go_to(int start) { successors_[0] = start; }
  void may_branch_to(int start) { successors_[1] = start; }
  // Of a frame that waits at a yield: `next`, where it goes on. -1: it begins.
  void will_enter(PyCodeObject* code, int next = -1);
  // To the caller's instruction that starts there; -1: to the one behind the call.
  void will_return(int to = -1) { returning_ = true, returns_to_ = to; }

  void follow(Frame frame) { frames_.push_back(std::move(frame)); }
  void start() { following_ = true; }
  void stop();
  bool following() const { return following_; }
  // Events may have been missed.
  bool lost() const { return lost_; }
  void set_lost() { lost_ = true; }
  bool returns() const { return returning_ && frames_.size() == 1; }  // pending() leaves the outermost frame

  const std::vector<Frame>& frames() const { return frames_; }
  const Frame& frame() const { return frames_.back(); }
  const std::shared_ptr<const CodeInfo>& info_of(PyCodeObject* code);
  const Instr* pending() const { return pending_; }  // or null
  const hook::FrameView* view() const { return view_; }
  int next_start() const { return frame().code->at(view_->offset)->start; }  // where the frame stands now

 private:
  void step(const hook::FrameView& view);
  void step_outside(const hook::FrameView& view);
  bool is_expected(const hook::FrameView& view);
  bool has_returned(const hook::FrameView& view) const;
  bool is_outer(void* id) const;
  void start_at(const Instr& instr);

  std::vector<Frame> frames_;
  std::unordered_map<PyCodeObject*, std::shared_ptr<const CodeInfo>> codes_;
  bool following_ = false;
  bool lost_ = false;

  // the instruction being followed
  const hook::FrameView* view_ = nullptr;
  const Instr* pending_ = nullptr;
  int last_offset_ = -1;
  int successors_[2] = {-1, -1};
  PyCodeObject* expected_ = nullptr;  // of the frame that it enters,
  int expected_next_ = -1;            // and where that goes on
  bool returning_ = false;
  int returns_to_ = -1;
};

}  // namespace dalsegno::recorder
