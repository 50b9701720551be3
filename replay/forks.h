// What is done around os.fork() and the like: threads of ours are ended, since Python warns of forks in processes that have other
// threads, where in eager there are none, and since a child would find their work half done.
#pragma once
namespace dalsegno::replay {

struct ForkHooks {
  void (*before)();  // without the GIL: it may wait for a thread that needs it
  void (*parent)();  // with the GIL, as `child`
  void (*child)();
};

// Registers with os.register_at_fork; hooks registered later run first before a fork, and last behind it. With the GIL.
void around_python_forks(const ForkHooks& hooks);

}  // namespace dalsegno::replay
