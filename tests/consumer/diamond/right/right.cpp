#include <string>

#include <rondo/scheduler.hpp>

void right(rondo::scheduler& time, std::string& said);

void right(rondo::scheduler& time, std::string& said) {
  time.schedule_after(std::chrono::milliseconds(2), [&said] { said += "right "; });
}
