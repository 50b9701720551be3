#include "trace/recorder/follower.h"

#include <algorithm>
#include <exception>

namespace dalsegno::recorder {

void Follower::entered(int index, void* frame_id) {
  if (index < static_cast<int>(frames_.size())) frames_[index].id = frame_id;
}

bool Follower::watch() {
  return std::all_of(frames_.begin(), frames_.end(), [](const Frame& f) { return hook::watch_code(f.code->code); });
}

// (A recorder that has not begun, as another one was at it, leaves that alone.)
void Follower::stop() {
  following_ = false;
  lost_ |= hook::watch_stop(this) == hook::WatchStatus::kLost;
}

const std::shared_ptr<const CodeInfo>& Follower::info_of(PyCodeObject* code) {
  auto& info = codes_[code];
  if (!info) info = CodeInfo::of(code);
  return info;
}

// The next event is in the new frame; anything else ends the recording.
void Follower::will_enter(PyCodeObject* code, int next) {
  expected_ = code;
  expected_next_ = next;
  successors_[0] = -2;
}

void Follower::before(const hook::FrameView& view) noexcept {
  if (!following_) return;
  const hook::ThreadGuard guard;
  view_ = &view;
  try {
    step(view);
  } catch (const std::exception&) {  // no memory: the recording is lost, the program goes on
    lost_ = true;
    stop();
  }
  view_ = nullptr;
}

void Follower::step(const hook::FrameView& view) {
  Frame& f = frames_.back();
  if (!f.id && view.code == f.code->code) f.id = view.id;  // the call being recorded begins
  if (view.id != f.id) return step_outside(view);
  const Instr* now = f.code->at(view.offset);
  if (pending_ && now == pending_ && view.offset > last_offset_ && view.offset <= pending_->at) {
    last_offset_ = view.offset;  // the instruction behind its EXTENDED_ARG, KW_NAMES or PRECALL
    return;
  }
  if (pending_) {
    const bool legal = now && now->start == view.offset && (now->start == successors_[0] || now->start == successors_[1]);
    if (!legal || returning_) return has_ended(Reason::exception);
    is_done();
    if (!following_) return;
  }
  if (!now) return has_ended(Reason::lost);
  start_at(*now);
}

// An event of another frame than the innermost one that is followed.
void Follower::step_outside(const hook::FrameView& view) {
  if (!pending_) return;
  if (has_returned(view)) {
    const Instr* call = frames_[frames_.size() - 2].call;
    frames_.pop_back();
    frames_.back().call = nullptr;
    has_left(*call);
    return start_at(*frame().code->at(view.offset));
  }
  if (is_expected(view)) {
    frames_.back().call = pending_;
    frames_.push_back({info_of(view.code), view.function, nullptr, view.id});
    has_entered(view);
    return start_at(*frame().code->at(view.offset));
  }
  if (is_outer(view.id)) return has_ended(Reason::exception);
  runs_elsewhere(view);
}

bool Follower::is_expected(const hook::FrameView& view) {
  if (!expected_ || view.previous != frame().id || view.code != expected_) return false;
  const CodeInfo& code = *info_of(expected_);
  return expected_next_ < 0 ? code.is_entry(view.offset) : code.goes_on_at(expected_next_, view.offset);
}

bool Follower::has_returned(const hook::FrameView& view) const {
  if (!returning_ || frames_.size() < 2) return false;
  const Frame& caller = frames_[frames_.size() - 2];
  if (view.id != caller.id) return false;
  const Instr* now = caller.code->at(view.offset);
  return now && now->start == (returns_to_ < 0 ? caller.call->next : returns_to_);
}

bool Follower::is_outer(void* id) const {
  return std::any_of(frames_.begin(), frames_.end() - 1, [&](const Frame& f) { return f.id == id; });
}

void Follower::start_at(const Instr& instr) {
  pending_ = &instr;
  last_offset_ = view_->offset;
  returning_ = false;
  expected_ = nullptr;
  successors_[0] = instr.next;
  successors_[1] = -1;
  begins(instr);
}

}  // namespace dalsegno::recorder
