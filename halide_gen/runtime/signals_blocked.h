// Threads of ours take no signals. One that reached such a thread would wait until something else wakes the interpreter (CPython looks who
// it is that the signal has come to), and timers of processor time go to whichever thread is running.
#pragma once
#include <pthread.h>
#include <signal.h>

namespace dalsegno {

// While one lives the calling thread takes no signals but its own faults; a thread started meanwhile never does.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace dalsegno
