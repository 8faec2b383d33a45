// What a thread knows about its own stack.
#include "scheduler/stack_marker.hpp"

#include <memory>

#include <doctest/doctest.h>

namespace scheduler_stack_marker {

using rondo::detail::stack_marker;

TEST_CASE("a core that is kept lives as long as the outermost of its markers") {
  const int core = 0, other_core = 0;
  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = alive;
  {
    const stack_marker of_another(stack_marker::kind::user_code, &other_core);
    {
      const stack_marker outer(stack_marker::kind::destruction, &core);
      {
        const stack_marker between(stack_marker::kind::user_code, &other_core);
        const stack_marker inner(stack_marker::kind::destruction, &core);
        stack_marker::keep(&core, std::move(alive));
      }
      CHECK_FALSE(watched.expired());
    }
    CHECK(watched.expired());
  }
}

TEST_CASE("a core without a marker on this thread is not kept") {
  const int core = 0, other_core = 0;
  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = alive;
  const stack_marker of_another(stack_marker::kind::user_code, &other_core);
  stack_marker::keep(&core, std::move(alive));
  CHECK(watched.expired());
}

}  // namespace scheduler_stack_marker
