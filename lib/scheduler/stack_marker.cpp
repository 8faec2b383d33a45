#include "scheduler/stack_marker.hpp"

#include <utility>

#include "sync/thread_local.hpp"

namespace rondo::detail {
namespace {

RONDO_THREAD_LOCAL constinit stack_marker* innermost_marker = nullptr;

}  // namespace

stack_marker::stack_marker(kind k, const void* core, const void* record) noexcept
    : kind_(k), core_(core), record_(record), outer_(innermost_marker) {
  innermost_marker = this;
}

stack_marker::~stack_marker() { innermost_marker = outer_; }

stack_marker* stack_marker::innermost() noexcept { return innermost_marker; }

bool stack_marker::inside(const void* core) noexcept {
  for (const stack_marker* m = innermost_marker; m != nullptr; m = m->outer_)
    if (m->core_ == core && m->kind_ != kind::in_flight && m->kind_ != kind::destruction) return true;
  return false;
}

bool stack_marker::inside(const void* core, const void* record) noexcept {
  for (const stack_marker* m = innermost_marker; m != nullptr; m = m->outer_)
    if (m->core_ == core && m->record_ == record) return true;
  return false;
}

std::size_t stack_marker::in_flight(const void* core) noexcept {
  std::size_t count = 0;
  for (const stack_marker* m = innermost_marker; m != nullptr; m = m->outer_)
    if (m->core_ == core && m->kind_ == kind::in_flight) ++count;
  return count;
}

void stack_marker::keep(const void* core, std::shared_ptr<void> alive) noexcept {
  stack_marker* outermost = nullptr;
  for (stack_marker* m = innermost_marker; m != nullptr; m = m->outer_)
    if (m->core_ == core) outermost = m;
  if (outermost != nullptr) outermost->kept_ = std::move(alive);
}

}  // namespace rondo::detail
