#include <string>

#include <rondo/scheduler.hpp>

void left(rondo::scheduler& time, std::string& said);

void left(rondo::scheduler& time, std::string& said) {
  time.schedule_after(std::chrono::milliseconds(1), [&said] { said += "left "; });
}
