// What a thread knows of its own stack.
#include "scheduler/frame.hpp"

#include <memory>

#include <doctest/doctest.h>

namespace {

using rondo::detail::frame;

TEST_CASE("a core that is kept lives as long as the outermost of its frames") {
  const int core = 0, other_core = 0;
  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = alive;
  {
    const frame of_another(frame::kind::user_code, &other_core);
    {
      const frame outer(frame::kind::destruction, &core);
      {
        const frame between(frame::kind::user_code, &other_core);
        const frame inner(frame::kind::destruction, &core);
        frame::keep(&core, std::move(alive));
      }
      CHECK_FALSE(watched.expired());
    }
    CHECK(watched.expired());
  }
}

TEST_CASE("a core without a frame on this thread is not kept") {
  const int core = 0, other_core = 0;
  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = alive;
  const frame of_another(frame::kind::user_code, &other_core);
  frame::keep(&core, std::move(alive));
  CHECK(watched.expired());
}

}  // namespace
