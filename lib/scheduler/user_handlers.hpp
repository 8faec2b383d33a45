// The functions that a user gives a scheduler, and what is reported to them.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include <rondo/executor.hpp>
#include <rondo/firing.hpp>
#include <rondo/slow_run.hpp>

#include "sync/sync.hpp"

namespace rondo::detail {

struct user_handlers {
  executor run_on;
  std::function<void(std::exception_ptr, const firing&)> on_error;
  std::function<void(const slow_run&)> on_slow;
  std::function<void(const firing&)> on_rejected;
  bool propagate_exceptions;  // of tasks on the driver
};

/// Which user code has thrown.
enum class error_source { task, executor, on_slow, on_rejected, on_earlier };

/// Reports to on_error or, if there is none (`user` may be null), on std::cerr. What on_error throws is reported on
/// std::cerr. Precondition: a stack marker marks user code.
void report(const user_handlers* user, error_source, std::exception_ptr, const firing&) noexcept;

/// Reports to on_slow or, if there is none, on std::cerr. What on_slow throws is reported. Precondition: as above.
void report_slow(const user_handlers* user, const slow_run&) noexcept;

/// Reports to on_rejected, if there is one. What on_rejected throws is reported. Precondition: as above.
void report_rejected(const user_handlers* user, const firing&) noexcept;

/// The handlers of a scheduler, until they are released. Whoever calls one keeps all of them alive during the call. All
/// members may be called from any thread.
class shared_handlers {
 public:
  explicit shared_handlers(user_handlers given)
      : has_executor_(given.run_on != nullptr),
        handlers_(std::make_shared<const user_handlers>(std::move(given))) {}

  /// Whether they have, or had, an executor.
  bool has_executor() const noexcept { return has_executor_; }

  /// Returns null if they were released.
  std::shared_ptr<const user_handlers> get() const noexcept {
    const std::lock_guard hold(mutex_);
    return handlers_;
  }

  void report(error_source who, std::exception_ptr thrown, const firing& fact) const noexcept {
    detail::report(get().get(), who, std::move(thrown), fact);
  }
  void report_slow(const slow_run& slow) const noexcept { detail::report_slow(get().get(), slow); }
  void report_rejected(const firing& fact) const noexcept { detail::report_rejected(get().get(), fact); }

  /// Destroys them, with no lock held. If one of them is being called, the end of that call destroys them instead.
  void release() noexcept {
    std::shared_ptr<const user_handlers> released;
    const std::lock_guard hold(mutex_);
    released.swap(handlers_);
  }

 private:
  const bool has_executor_;
  mutable sync::list_mutex mutex_;
  std::shared_ptr<const user_handlers> handlers_;
};

}  // namespace rondo::detail
