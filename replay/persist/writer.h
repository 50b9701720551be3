// The thread that writes traces to the store, so that no call waits for a disk.
#pragma once
#include <functional>

namespace dalsegno::replay {

// Adds a job; jobs are done one after the other, in this order. The thread is started when the first comes; where it cannot be, the
// caller does the work. It is ended around forks: a child has its own, and its own jobs. A job must not need the GIL. With the GIL.
void write_later(std::function<void()> job);
// Until all jobs are done. Without the GIL; prepare_writer() has been called before.
void wait_for_writer();
// Jobs are not done yet, so the store may be in use. Any thread that has the GIL.
bool writing();
// Makes what the writer needs. With the GIL; does nothing the second time.
void prepare_writer();

}  // namespace dalsegno::replay
