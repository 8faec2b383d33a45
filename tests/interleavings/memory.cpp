#include "interleavings/memory.hpp"

#include <algorithm>
#include <utility>

namespace rondo::test {
namespace {

using order = std::memory_order;

std::uintptr_t address_of(const void* object) noexcept { return reinterpret_cast<std::uintptr_t>(object); }

bool acquires(order o) noexcept {
  return o == order::acquire || o == order::consume || o == order::acq_rel || o == order::seq_cst;
}
bool releases(order o) noexcept { return o == order::release || o == order::acq_rel || o == order::seq_cst; }

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

template <class Clock>
void join_clocks(Clock& to, const Clock& from) noexcept {
  for (std::size_t i = 0; i != to.size(); ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace

/// An access that is about to be made.
struct memory::event {
  std::size_t thread;
  const object& on;
  std::size_t place;  // of the value that it reads, or that its own value will follow
  bool writes;
  bool is_sc;
};

void memory::knowledge::join(const knowledge& other) {
  join_clocks(known, other.known);
  join_clocks(strongly, other.strongly);
  for (std::size_t i = 0; i != other.view.size(); ++i)
    if (other.view[i] != nullptr) see(i, *other.view[i]);
}

void memory::knowledge::see(std::size_t number, const value& v) {
  if (view.size() <= number) view.resize(number + 1);
  if (view[number] == nullptr || view[number]->place < v.place) view[number] = &v;
}

std::size_t memory::knowledge::place_of(std::size_t number) const noexcept {
  return number < view.size() && view[number] != nullptr ? view[number]->place : 0;
}

void memory::begin() {
  threads_ = {};
  objects_.clear();
  objects_so_far_ = 0;
  values_.clear();
  locks_.clear();
  fences_.clear();
  sc_.clear();
}

void memory::forget(const void* first, std::size_t bytes) {
  const std::uintptr_t begin = address_of(first);
  objects_.erase(objects_.lower_bound(begin), objects_.lower_bound(begin + bytes));
  locks_.erase(locks_.lower_bound(begin), locks_.lower_bound(begin + bytes));
}

memory::word memory::load(std::size_t thread, const void* address, word latest, order o) {
  tick(thread);
  object& on = at(address, latest);
  const bool is_sc = o == order::seq_cst;
  const std::size_t place = decide(thread, on, [&](std::size_t p) {
    return fits({thread, on, p, false, is_sc});
  });
  return read(thread, on, place, o);
}

void memory::store(std::size_t thread, const void* address, word& latest, word bits, order o) {
  tick(thread);
  object& on = at(address, latest);
  const bool is_sc = o == order::seq_cst;
  const std::size_t place = decide(thread, on, [&](std::size_t p) {
    return !on.values[p]->is_updated && fits({thread, on, p, true, is_sc});
  });
  write({thread, on, place, true, is_sc}, on, bits, o);
  latest = on.values.back()->bits;
}

memory::word memory::update(std::size_t thread, const void* address, word& latest,
                            const std::function<word(word)>& change, order o) {
  tick(thread);
  object& on = at(address, latest);
  const bool is_sc = o == order::seq_cst;
  const std::size_t place = decide(thread, on, [&](std::size_t p) {
    return !on.values[p]->is_updated && fits({thread, on, p, true, is_sc});
  });
  const word found = on.values[place]->bits;
  update_at(thread, on, place, change(found), o);
  latest = on.values.back()->bits;
  return found;
}

bool memory::compare_exchange(std::size_t thread, const void* address, word& latest, word& expected,
                              word bits, order success, order failure) {
  tick(thread);
  object& on = at(address, latest);
  const std::size_t place = decide(thread, on, [&](std::size_t p) {
    const value& v = *on.values[p];
    const bool is_equal = v.bits == expected;
    const bool is_sc = (is_equal ? success : failure) == order::seq_cst;
    return !(is_equal && v.is_updated) && fits({thread, on, p, is_equal, is_sc});
  });
  if (on.values[place]->bits != expected) {
    expected = read(thread, on, place, failure);
    return false;
  }
  update_at(thread, on, place, bits, success);
  latest = on.values.back()->bits;
  return true;
}

void memory::fence(std::size_t thread, order o) {
  tick(thread);
  thread_state& t = threads_[thread];
  if (acquires(o)) t.now.join(t.acquired);
  if (o == order::seq_cst) {
    nodes earlier = strongly_before(thread);
    for (const auto& [address, on] : objects_)
      append(earlier, ordered_before({thread, on, t.now.place_of(on.number), false, true}));
    const node n = sc_.add();
    sc_.put_before(earlier, {n});
    t.in_order.emplace_back(t.time, n);
    fences_.push_back({thread, t.time, n, t.now.view});
  }
  if (releases(o)) t.fenced = std::make_shared<const knowledge>(t.now);
}

void memory::catch_up(std::size_t thread) {
  for (const auto& [address, on] : objects_)
    if (!on.values.empty()) threads_[thread].now.see(on.number, *on.values.back());
}

void memory::acquire(std::size_t thread, const void* lock) {
  tick(thread);
  const auto found = locks_.find(address_of(lock));
  if (found != locks_.end()) threads_[thread].now.join(found->second);
}

void memory::release(std::size_t thread, const void* lock) {
  tick(thread);
  locks_[address_of(lock)] = threads_[thread].now;
}

/// The thread takes a step.
void memory::tick(std::size_t thread) noexcept {
  thread_state& t = threads_[thread];
  t.now.strongly[thread] = t.time++;
  t.now.known[thread] = t.time;
}

/// (If the object has another value than the last one, it is another object.)
memory::object& memory::at(const void* address, word latest) {
  object& o = objects_[address_of(address)];
  if (!o.values.empty() && o.values.back()->bits != latest) o.values.clear();
  if (o.values.empty()) {
    o.number = objects_so_far_++;
    value& first = values_.emplace_back();
    first.bits = latest;
    o.values.push_back(&first);
  }
  return o;
}

/// Returns the place of the last value or, if there is a choice, that of another one which is allowed.
template <class Allowed>
std::size_t memory::decide(std::size_t thread, const object& on, Allowed&& allowed) {
  const std::size_t last = on.values.size() - 1;
  const std::size_t first = threads_[thread].now.place_of(on.number);
  if (first == last || !chooser_.may_choose()) return last;
  std::vector<std::size_t> places{last};
  for (std::size_t p = last; p-- != first;)
    if (allowed(p)) places.push_back(p);
  return places.size() == 1 ? last : places[chooser_.choose(places.size())];
}

memory::word memory::read(std::size_t thread, object& on, std::size_t place, order o) {
  value& v = *on.values[place];
  put_in_order({thread, on, place, false, o == order::seq_cst}, v.readers_at, v.readers_until);
  knowledge& now = threads_[thread].now;
  now.see(on.number, v);
  take_over(thread, v.released, o);
  return v.bits;
}

/// Adds a value that follows `e.place`.
memory::value& memory::write(const event& e, object& on, word bits, order o) {
  value& v = values_.emplace_back();
  v.bits = bits;
  put_in_order(e, v.at, v.until);
  on.values.insert(on.values.begin() + static_cast<std::ptrdiff_t>(e.place) + 1, &v);
  for (std::size_t p = e.place + 1; p != on.values.size(); ++p) on.values[p]->place = p;
  thread_state& t = threads_[e.thread];
  t.now.see(on.number, v);
  v.released = releases(o) ? std::make_shared<const knowledge>(t.now) : t.fenced;
  return v;
}

/// Makes a read-modify-write, which belongs to the release sequence of what it has read.
void memory::update_at(std::size_t thread, object& on, std::size_t place, word bits, order o) {
  value& found = *on.values[place];
  found.is_updated = true;
  take_over(thread, found.released, o);
  value& v = write({thread, on, place, true, o == order::seq_cst}, on, bits, o);
  if (found.released == nullptr) return;
  if (v.released == nullptr) {
    v.released = found.released;
  } else {
    knowledge both = *v.released;
    both.join(*found.released);
    v.released = std::make_shared<const knowledge>(std::move(both));
  }
}

/// A load has read what was released with this message.
void memory::take_over(std::size_t thread, const message& released, order o) {
  if (released == nullptr) return;
  thread_state& t = threads_[thread];
  if (acquires(o)) t.now.join(*released);
  t.acquired.join(*released);
}

// The total order of what is seq_cst. Something precedes B in it if it is A, or a fence that happens before A, and A is
// coherence-ordered before B; or if B is before a fence in the same way.

/// Whether there is still an order if this happens.
bool memory::fits(const event& e) const {
  const nodes later = ordered_after(e);
  if (later.empty()) return true;
  nodes earlier = fences_before(e.thread);
  if (e.is_sc) {
    append(earlier, strongly_before(e.thread));
    append(earlier, ordered_before(e));
  }
  return !sc_.comes_before(later, earlier);
}

/// Puts `e` in order, and notes what of it is seq_cst: itself, and the fences before.
void memory::put_in_order(const event& e, nodes& itself, nodes& with_fences) {
  nodes those = fences_before(e.thread);
  const nodes later = ordered_after(e);
  if (e.is_sc) {
    const nodes earlier = ordered_before(e);
    const nodes strongly = strongly_before(e.thread);
    const node n = sc_.add();
    sc_.put_before(earlier, {n});
    sc_.put_before(strongly, {n});
    threads_[e.thread].in_order.emplace_back(threads_[e.thread].time, n);
    those.push_back(n);
    itself.push_back(n);
  }
  sc_.put_before(those, later);
  append(with_fences, those);
}

/// What precedes everything that `e` is coherence-ordered before.
memory::nodes memory::ordered_before(const event& e) const {
  nodes all;
  for (std::size_t p = 0; p <= e.place; ++p) {
    append(all, e.on.values[p]->until);
    if (p != e.place || e.writes) append(all, e.on.values[p]->readers_until);
  }
  return all;
}

memory::nodes memory::ordered_after(const event& e) const {
  nodes all;
  for (std::size_t p = e.place + 1; p < e.on.values.size(); ++p) {
    append(all, e.on.values[p]->at);
    append(all, e.on.values[p]->readers_at);
  }
  for (const sc_fence& f : fences_)
    if (e.on.number < f.view.size() && f.view[e.on.number] != nullptr && f.view[e.on.number]->place > e.place)
      all.push_back(f.at);
  return all;
}

/// The seq_cst fences that happen before the step that the thread takes.
memory::nodes memory::fences_before(std::size_t thread) const {
  nodes all;
  for (const sc_fence& f : fences_)
    if (f.time <= threads_[thread].now.known[f.thread]) all.push_back(f.at);
  return all;
}

/// The last seq_cst step of each thread that strongly happens before the step that the thread takes.
memory::nodes memory::strongly_before(std::size_t thread) const {
  nodes all;
  for (std::size_t other = 0; other != most_threads; ++other) {
    const auto& steps = threads_[other].in_order;
    const auto next = std::find_if(steps.begin(), steps.end(), [&](const auto& s) {
      return s.first > threads_[thread].now.strongly[other];
    });
    if (next != steps.begin()) all.push_back(std::prev(next)->second);
  }
  return all;
}

}  // namespace rondo::test
