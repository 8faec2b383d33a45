// An executor that shows whether anything of its context is still used.
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>

namespace rondo::test {

/// What counted executors have in common.
struct executor_uses {
  std::atomic<int> copies{0};
  std::function<void()> submitted = [] {};  // called inside execute(), when the function has been submitted
};

/// Does what Inner does.
template <class Inner>
class counted_executor {
 public:
  counted_executor(Inner inner, executor_uses& uses) noexcept : inner_(std::move(inner)), uses_(&uses) {
    ++uses_->copies;
  }
  counted_executor(const counted_executor& other) noexcept : counted_executor(other.inner_, *other.uses_) {}
  counted_executor(counted_executor&& other) noexcept
      : inner_(std::move(other.inner_)), uses_(std::exchange(other.uses_, nullptr)) {}
  counted_executor& operator=(const counted_executor&) = delete;
  ~counted_executor() {
    if (uses_ != nullptr) --uses_->copies;
  }

  template <class F>
  void execute(F&& f) const {
    inner_.execute(std::forward<F>(f));
    uses_->submitted();
  }

  template <class Property>
  requires(boost::asio::can_query<const Inner&, Property>::value) auto query(const Property& p) const noexcept
      -> decltype(boost::asio::query(std::declval<const Inner&>(), p)) {
    return boost::asio::query(inner_, p);
  }
  template <class Property>
  requires(boost::asio::can_require<const Inner&, Property>::value) auto require(
      const Property& p) const noexcept {
    return with(boost::asio::require(inner_, p));
  }
  template <class Property>
  requires(boost::asio::can_prefer<const Inner&, Property>::value) auto prefer(
      const Property& p) const noexcept {
    return with(boost::asio::prefer(inner_, p));
  }

  bool operator==(const counted_executor& other) const noexcept { return inner_ == other.inner_; }
  bool operator!=(const counted_executor& other) const noexcept { return inner_ != other.inner_; }

 private:
  template <class Other>
  counted_executor<Other> with(Other inner) const noexcept {
    return {std::move(inner), *uses_};
  }

  Inner inner_;
  executor_uses* uses_;  // null: moved from
};

}  // namespace rondo::test
