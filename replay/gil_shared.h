// A shared pointer whose count the GIL guards: taking one costs an increment, where std::shared_ptr takes two atomic operations.
#pragma once
#include <cstdint>
#include <utility>

namespace dalsegno::replay {

template <class T>
class GilShared {
 public:
  GilShared() = default;
  GilShared(const GilShared& other) : shared_(other.shared_) {
    if (shared_) ++shared_->count;
  }
  GilShared(GilShared&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
  GilShared& operator=(GilShared other) noexcept {
    std::swap(shared_, other.shared_);
    return *this;
  }
  ~GilShared() {
    if (shared_ && --shared_->count == 0) delete shared_;
  }
  static GilShared make() {
    GilShared made;
    made.shared_ = new Shared;
    return made;
  }
  T* get() const { return shared_ ? &shared_->value : nullptr; }
  T& operator*() const { return shared_->value; }
  T* operator->() const { return &shared_->value; }
  bool operator==(const GilShared& other) const { return shared_ == other.shared_; }

 private:
  struct Shared {
    int64_t count = 1;
    T value;
  };
  Shared* shared_ = nullptr;
};

}  // namespace dalsegno::replay
