// What each thread has of its own, for as long as it lives. A thread_local with a destructor would do but for this: a thread that comes to
// it for the first time waits for the loader's lock (__cxa_thread_atexit_impl of glibc), which whoever opens a library holds. Opening
// Halide's takes 75 ms.
#pragma once
#include <pthread.h>

#include <new>

namespace dalsegno::rt {

template <class T>
class PerThread {
 public:
  // The calling thread's; made when it first asks. Null: there is no memory, or no key is left.
  static T* get() {
    static const Key key;
    if (!key.made) return nullptr;
    if (void* known = pthread_getspecific(key.key)) return static_cast<T*>(known);
    T* made = new (std::nothrow) T;
    if (made && pthread_setspecific(key.key, made) == 0) return made;
    delete made;
    return nullptr;
  }

 private:
  struct Key {
    pthread_key_t key{};
    bool made = pthread_key_create(&key, [](void* own) { delete static_cast<T*>(own); }) == 0;
  };
};

}  // namespace dalsegno::rt
