// Coroutines that sleep, each once.
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "model/random_program.hpp"

namespace rondo::test {

namespace {

const char* text_of(nap_end how) {
  switch (how) {
    case nap_end::asked:
      return "asked";
    case nap_end::stopped_error:
      return "stopped_error";
    default:
      return "capacity_error";
  }
}

}  // namespace

/// Starts a coroutine, which begins to sleep.
void random_program::sleep() {
  const wish w = some_wish();
  const std::size_t n = ids_.size();
  sleeper s;
  if (nap_stopper::possible && choices_.one_in(8)) {
    s.stopper.request_stop();
    nap_ends_ = nap_end::asked;
  } else if (const refusal r = refused(); r != refusal::none) {
    nap_ends_ = r == refusal::stopped ? nap_end::stopped_error : nap_end::capacity_error;
  }
  const bool sleeps = !nap_ends_;
  note(sleeps ? "t" + std::to_string(n) + " = " : std::string(text_of(*nap_ends_)) + ": ",
       w.relative ? "sleep_for(time, " : "sleep_until(time, ", when(w.relative, w.delay), ", token)");
  const auto token = s.stopper.get_token();
  if (sleeps) {
    const bool hands_over = is_.hands_over == setting::handing::everything;
    model_.schedule({}, hands_over ? runs_on::executor : runs_on::driver, w.due);
    ids_.emplace_back();
    naps_[n] = std::move(s);
  }
  const nap taken = take_nap(n, w, token);
  taken.coroutine.resume();
  expect(!nap_ends_, "a coroutine sleeps that was not to begin");
  if (!sleeps || !is_right()) return;
  naps_[n].coroutine = taken.coroutine;
  ids_[n] = new_id();
}

/// The coroutine. (Its copy of `callable_` lives until it ends.)
nap random_program::take_nap(std::size_t n, wish w, nap_stopper::token token) {
  const std::shared_ptr<int> alive = callable_;
  std::optional<nap_end> end;
  try {
    bool slept = false;
    if (w.relative)
      slept = co_await sleep_for(time_, duration(w.delay), std::move(token));
    else
      slept = co_await sleep_until(time_, clock_time(w.due), std::move(token));
    if (!slept) end = nap_end::asked;
  } catch (const stopped_error&) {
    end = nap_end::stopped_error;
  } catch (const capacity_error&) {
    end = nap_end::capacity_error;
  }
  end ? nap_ended(n, *end) : woke(n);
}

/// A coroutine continues, but not because its timer has fired.
void random_program::nap_ended(std::size_t n, nap_end how) {
  if (!is_right()) return;
  const auto expected = std::exchange(nap_ends_, std::nullopt);
  if (expected) {
    if (*expected != how)
      fail(std::string("a nap was to end as ") + text_of(*expected) + ", but did as " + text_of(how));
    return;
  }
  // The call in progress has ended the timer: its task was destroyed.
  const bool dropped = how == nap_end::stopped_error && n < ids_.size() && !model_.pending(n);
  if (!dropped) return fail("a nap was not to end: t" + std::to_string(n) + ", " + text_of(how));
  note("t", n, " is dropped");
}

/// Called in the run of a coroutine's timer.
void random_program::woke(std::size_t n) {
  if (!is_right()) return;
  const auto expected = n < ids_.size() ? starting(n) : std::nullopt;
  if (!expected || expected->timer != n) return fail("a coroutine was not to wake up: t" + std::to_string(n));
  act_as(*expected, false);
}

void random_program::request_stop() {
  if (naps_.empty()) return;
  auto& [n, s] = *std::next(naps_.rbegin(), static_cast<std::ptrdiff_t>(pick(naps_.size())));
  const bool wakes = model_.pending(n);
  note("request_stop() for t", n, wakes ? " -> asked" : " -> nothing");
  model_.cancel(n);
  if (wakes) nap_ends_ = nap_end::asked;
  s.stopper.request_stop();
  expect(!nap_ends_, "a coroutine that was asked to stop has not woken up");
}

/// Destroys a sleeping coroutine.
void random_program::abandon_sleep() {
  if (naps_.empty()) return;
  const auto& [n, s] = *std::next(naps_.rbegin(), static_cast<std::ptrdiff_t>(pick(naps_.size())));
  if (!model_.pending(n)) return;
  note("destroy the coroutine of t", n);
  model_.cancel(n);
  s.coroutine.destroy();
}

}  // namespace rondo::test
