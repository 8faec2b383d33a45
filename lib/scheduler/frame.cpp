#include "scheduler/frame.hpp"

#include <utility>

#include "sync/thread_local.hpp"

namespace rondo::detail {
namespace {

RONDO_THREAD_LOCAL constinit frame* innermost = nullptr;

}  // namespace

frame::frame(kind k, const void* core, const void* record, std::uint64_t generation) noexcept
    : kind_(k), core_(core), record_(record), generation_(generation), outer_(innermost) {
  innermost = this;
}

frame::~frame() { innermost = outer_; }

bool frame::inside(const void* core) noexcept {
  for (const frame* f = innermost; f != nullptr; f = f->outer_)
    if (f->core_ == core && f->kind_ == kind::user_code) return true;
  return false;
}

bool frame::inside(const void* core, const void* record, std::uint64_t generation) noexcept {
  for (const frame* f = innermost; f != nullptr; f = f->outer_)
    if (f->core_ == core && f->record_ == record && f->generation_ == generation) return true;
  return false;
}

std::size_t frame::activities(const void* core) noexcept {
  std::size_t count = 0;
  for (const frame* f = innermost; f != nullptr; f = f->outer_)
    if (f->core_ == core && f->kind_ == kind::activity) ++count;
  return count;
}

void frame::keep(const void* core, std::shared_ptr<void> alive) noexcept {
  frame* outermost = nullptr;
  for (frame* f = innermost; f != nullptr; f = f->outer_)
    if (f->core_ == core) outermost = f;
  if (outermost != nullptr) outermost->kept_ = std::move(alive);
}

}  // namespace rondo::detail
