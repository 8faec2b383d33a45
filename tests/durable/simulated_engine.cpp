#include "durable/simulated_engine.hpp"

#include <array>
#include <stdexcept>
#include <variant>

#include "durable/microseconds.hpp"
#include "durable/schedule_access.hpp"
#include "durable/simulated_database.hpp"
#include "durable/text.hpp"

namespace durable_test {

namespace detail = rondo::durable::detail;
using rondo::durable::listed;
using rondo::durable::planned;
using rondo::durable::repeated;
using rondo::durable::store_error;
using rondo::durable::submission;
using rondo::durable::task;
using rondo::durable::task_state;
using entry = simulated_transaction::entry;

namespace {

[[noreturn]] void refuse_locked(std::int64_t id) {
  throw store_error("rondo: another transaction has changed task " + std::to_string(id) +
                    " of the simulated database");
}

std::int64_t microseconds(const simulated_transaction& t, const detail::due_time& due) {
  if (const auto* delay = std::get_if<rondo::duration>(&due))
    return t.from_now(detail::microseconds_of_delay(*delay));
  return detail::microseconds_of(std::get<rondo::durable::wall_time>(due));
}

/// Null if the transaction sees no such task. Throws if it is locked.
entry* unlocked(simulated_transaction& t, std::int64_t id) {
  entry* const e = t.find(id);
  if (e == nullptr || t.look(*e) == nullptr) return nullptr;
  if (t.is_locked(*e)) refuse_locked(id);
  return e;
}

bool has_key(const row& r, const std::string& queue, const std::string& key) {
  return r.lives() && r.key == key && r.queue == queue;
}

/// The live task that has the key. Throws if another open transaction adds or removes one. Precondition: the key is not
/// empty.
entry* with_key(simulated_transaction& t, const std::string& queue, const std::string& key) {
  entry* found = nullptr;
  for (auto& [id, e] : t.all()) {
    const auto has = [&](const std::optional<row>& r) { return r && has_key(*r, queue, key); };
    if (t.is_locked(e) && (has(e.committed) || has(e.pending))) refuse_locked(id);
    if (const row* r = t.look(e); r != nullptr && has_key(*r, queue, key)) found = &e;
  }
  return found;
}

/// Takes no notice of what others have not committed.
const row* look_for(simulated_transaction& t, const std::string& queue, const std::string& key) {
  for (const auto& [id, e] : t.all())
    if (const row* r = t.look(e); r != nullptr && has_key(*r, queue, key)) return r;
  return nullptr;
}

bool cancel_task(simulated_transaction& t, entry* e) {
  if (e == nullptr) return false;
  const row_state state = t.look(*e)->state;
  if (state == row_state::waiting || state == row_state::held) {
    t.remove(*e);
    return true;
  }
  if (state == row_state::running) {
    row& r = t.change(*e);
    r.state = row_state::cancelled;
    r.key.clear();
    t.tell(r.queue);
  }
  return false;
}

void set_due(row& r, std::int64_t due) {
  r.due = due;
  r.place = r.lane.empty() ? std::nullopt : std::optional(due);
}

void make_wait(row& r, std::int64_t due) {
  r.state = row_state::waiting;
  set_due(r, due);
  r.owner.clear();
  r.lease_until.reset();
}

bool move(simulated_transaction& t, entry* e, const detail::due_time& due) {
  if (e == nullptr) return false;
  const row_state state = t.look(*e)->state;
  if (state != row_state::waiting && state != row_state::held) return false;
  row& r = t.change(*e);
  make_wait(r, microseconds(t, due));
  ++r.fence;
  t.tell_if_soon(r);
  return true;
}

std::int64_t add(simulated_transaction& t, const submission& what, std::int64_t due) {
  if (!what.key.empty()) {
    entry* const old = with_key(t, what.queue, what.key);
    if (old != nullptr && !what.replace) detail::refuse_key(what, t.look(*old)->id);
    cancel_task(t, old);
  }
  row& r = t.insert();
  r.queue = what.queue;
  r.key = what.key;
  r.payload = what.payload;
  r.lane = what.lane;
  r.max_attempts = what.max_attempts;
  make_wait(r, due);
  t.tell_if_soon(r);
  return r.id;
}

bool is_equal(const row& r, const repeated& what) {
  return r.schedule == what.when.text() && r.missed == what.missed && r.declared_lane() == what.lane &&
         r.payload == what.payload;
}

std::int64_t declare(simulated_transaction& t, const repeated& what) {
  if (const row* there = look_for(t, what.queue, what.key)) {
    if (there->schedule.empty()) detail::refuse_key({.queue = what.queue, .key = what.key}, there->id);
    if (is_equal(*there, what)) return there->id;
  }
  entry* const old = with_key(t, what.queue, what.key);
  const detail::zoned_point first = detail::checked_point(what, detail::first_point(what.when, t.wall_now()));
  const std::int64_t point = detail::microseconds_of(first.at);
  row& r = old != nullptr ? t.change(*old) : t.insert();
  r.queue = what.queue;
  r.key = what.key;
  r.payload = what.payload;
  if (r.state != row_state::running)
    r.lane = what.lane;
  else if (r.lane != what.lane)
    r.next_lane = what.lane;
  else
    r.next_lane.reset();
  r.schedule = what.when.text();
  r.missed = what.missed;
  r.attempt = 0;
  r.reason.clear();
  if (r.state == row_state::running) {  // which ends before the point
    set_due(r, point);
  } else {
    make_wait(r, point);
    if (old != nullptr) ++r.fence;
  }
  r.point = point;
  r.point_offset = detail::offset_of(first);
  t.tell_if_soon(r);
  return r.id;
}

task_state state_of(const row& r) {
  static constexpr std::array states{task_state::waiting, task_state::held, task_state::running,
                                     task_state::dead, task_state::running};
  return states.at(static_cast<std::size_t>(r.state));
}

}  // namespace

task task_of(const row& r) {
  return {.id = r.id,
          .queue = r.queue,
          .key = r.key,
          .payload = r.payload,
          .due = detail::wall_time_of(r.due),
          .attempt = r.attempt,
          .fence = r.fence,
          .point = r.point ? std::optional(detail::wall_time_of(*r.point)) : std::nullopt};
}

template <class Function>
auto simulated_engine::change(const transaction* in, Function f) {
  if (in != nullptr)
    throw std::invalid_argument("rondo: the simulated database has no transactions of the user");
  simulated_transaction t(*data_, nullptr, true);
  t.statement();
  auto result = f(t);
  t.commit(true);
  return result;
}

template <class Function>
auto simulated_engine::read(const transaction* in, Function f) {
  if (in != nullptr)
    throw std::invalid_argument("rondo: the simulated database has no transactions of the user");
  simulated_transaction t(*data_, nullptr, false);
  t.statement();
  auto result = f(t);
  t.commit(false);
  return result;
}

std::int64_t simulated_engine::submit(const due_time& due, const submission& what, const transaction* in) {
  return change(in, [&](auto& t) { return add(t, what, microseconds(t, due)); });
}

std::vector<std::int64_t> simulated_engine::submit_all(std::span<const planned> all, const transaction* in) {
  return change(in, [&](auto& t) {
    const std::size_t repeated = detail::first_repeated_key(all);
    std::vector<std::int64_t> ids;
    for (const planned& p : all.first(repeated)) ids.push_back(add(t, p.what, microseconds(t, p.when)));
    if (repeated != all.size()) detail::refuse_key(all[repeated].what, 0);
    return ids;
  });
}

std::int64_t simulated_engine::repeat(const repeated& what, const transaction* in) {
  return change(in, [&](auto& t) { return declare(t, what); });
}

bool simulated_engine::cancel(std::int64_t id, const transaction* in) {
  return change(in, [&](auto& t) { return cancel_task(t, unlocked(t, id)); });
}

bool simulated_engine::cancel(const std::string& queue, const std::string& key, const transaction* in) {
  return change(in, [&](auto& t) { return cancel_task(t, with_key(t, queue, key)); });
}

bool simulated_engine::reschedule(std::int64_t id, const due_time& due, const transaction* in) {
  return change(in, [&](auto& t) { return move(t, unlocked(t, id), due); });
}

bool simulated_engine::reschedule(const std::string& queue, const std::string& key, const due_time& due,
                                  const transaction* in) {
  return change(in, [&](auto& t) { return move(t, with_key(t, queue, key), due); });
}

std::optional<task> simulated_engine::find(std::int64_t id, const transaction* in) {
  return read(in, [&](auto& t) -> std::optional<task> {
    entry* const e = t.find(id);
    const row* const r = e != nullptr ? t.look(*e) : nullptr;
    return r != nullptr && r->lives() ? std::optional(task_of(*r)) : std::nullopt;
  });
}

std::optional<task> simulated_engine::find(const std::string& queue, const std::string& key,
                                           const transaction* in) {
  return read(in, [&](auto& t) {
    const row* const r = look_for(t, queue, key);
    return r != nullptr ? std::optional(task_of(*r)) : std::nullopt;
  });
}

void simulated_engine::pause(const std::string& queue) {
  change(nullptr, [&](auto& t) {
    t.set_paused(queue, true);
    return true;
  });
}

void simulated_engine::resume(const std::string& queue) {
  change(nullptr, [&](auto& t) {
    t.set_paused(queue, false);
    t.tell(queue);
    return true;
  });
}

bool simulated_engine::paused(const std::string& queue) {
  return read(nullptr, [&](auto&) { return data_->paused.contains(queue); });
}

std::vector<listed> simulated_engine::list(const std::string& queue, std::optional<task_state> only,
                                           std::int64_t after_id, std::size_t limit) {
  if (only && (*only < task_state::waiting || *only > task_state::dead))
    throw std::invalid_argument("rondo: there is no task_state " + std::to_string(static_cast<int>(*only)));
  return read(nullptr, [&](auto& t) {
    std::vector<listed> found;
    for (auto at = t.all().upper_bound(after_id); at != t.all().end() && found.size() < limit; ++at)
      if (const row* r = t.look(at->second);
          r != nullptr && r->queue == queue && (!only || *only == state_of(*r)))
        found.push_back({task_of(*r), state_of(*r), r->owner, r->reason});
    return found;
  });
}

bool simulated_engine::retry(std::int64_t id) {
  return change(nullptr, [&](auto& t) {
    entry* const e = unlocked(t, id);
    if (e == nullptr || t.look(*e)->lives()) return false;
    const submission what{.queue = t.look(*e)->queue, .key = t.look(*e)->key};
    if (!what.key.empty())
      if (entry* const other = with_key(t, what.queue, what.key))
        detail::refuse_key(what, t.look(*other)->id);
    row& r = t.change(*e);
    make_wait(r, t.from_now(0));
    r.attempt = 0;
    r.reason.clear();
    t.tell(r.queue);
    return true;
  });
}

std::unique_ptr<detail::session> simulated_engine::connect(const std::string& owner,
                                                           const detail::claim_rules& rules) {
  return std::make_unique<simulated_session>(data_, owner, rules);
}

// What a simulated database shows.

std::shared_ptr<rondo::durable::detail::engine> simulated_database::open() {
  return std::make_shared<simulated_engine>(data_);
}

std::vector<row> simulated_database::rows() const {
  std::vector<row> all;
  for (const auto& [id, e] : data_->entries)
    if (e.committed) all.push_back(*e.committed);
  return all;
}

std::vector<std::string> simulated_database::owners() const {
  std::vector<std::string> all;
  for (const auto& [owner, lives] : data_->owners) all.push_back(owner);
  return all;
}

const row* simulated_database::find(std::int64_t id) const {
  const auto at = data_->entries.find(id);
  return at != data_->entries.end() && at->second.committed ? &*at->second.committed : nullptr;
}

bool simulated_database::is_locked(std::int64_t id) const {
  const auto at = data_->entries.find(id);
  return at != data_->entries.end() && at->second.by != nullptr;
}

}  // namespace durable_test
