#include "durable/simulated_transaction.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "durable/engine.hpp"
#include "durable/microseconds.hpp"

namespace durable_test {

using rondo::durable::store_error;

void simulated_data::notify(const std::string& queue, const simulated_listener* but) {
  for (simulated_listener* l : listeners)
    if (l != but && l->connected && std::ranges::find(l->queues, queue) != l->queues.end()) l->news = true;
}

void simulated_data::end_session(const std::string& owner) {
  if (const auto own = owners.find(owner); own != owners.end()) own->second = false;
  for (simulated_listener* l : listeners)
    if (l->owner == owner) l->connected = false;
}

void simulated_data::abort_all() {
  for (simulated_transaction* t : open) {
    t->close();
    t->phase_ = simulated_transaction::phase::crashed;
  }
  open.clear();
}

void simulated_data::disconnect_all() {
  ++changes;
  for (simulated_listener* l : listeners) l->connected = false;
  // PostgreSQL keeps the owners in an unlogged table.
  if (how == locking::rows) owners.clear();
  for (auto& [owner, lives] : owners) lives = false;
}

void simulated_data::crash(std::size_t forget) {
  abort_all();
  for (; forget != 0 && !not_durable.empty(); --forget) {
    for (auto& [id, before] : not_durable.back().rows)
      if (before)
        entries[id].committed = std::move(before);
      else
        entries.erase(id);
    for (const auto& [owner, was_there] : not_durable.back().owners)
      was_there ? static_cast<void>(owners[owner] = false) : static_cast<void>(owners.erase(owner));
    not_durable.pop_back();
  }
  not_durable.clear();
  disconnect_all();
}

simulated_copy simulated_data::copy() const {
  simulated_copy all{.last_id = last_id, .paused = paused};
  for (const auto& [id, e] : entries)
    if (e.committed) all.rows.emplace(id, *e.committed);
  for (const auto& [owner, lives] : owners) all.owners.insert(owner);
  return all;
}

void simulated_data::go_back(const simulated_copy& to) {
  abort_all();
  entries.clear();
  for (const auto& [id, r] : to.rows) entries[id].committed = r;
  last_id = to.last_id;
  paused = to.paused;
  owners.clear();
  for (const std::string& owner : to.owners) owners[owner] = false;
  not_durable.clear();
  ++timeline;
  disconnect_all();
}

/// Greater than that of any claim before, also of one that is lost.
std::int64_t simulated_data::fence_after(const row& r, std::int64_t now, const std::string& owner) {
  if (fences_repeat) {
    std::int64_t fence = r.fence + 1;
    while (!given.emplace(r.id, fence, owner).second) ++fence;
    return fence;
  }
  constexpr int bits_of_time = 43;  // as in PostgreSQL's session. (SQLite has no timelines.)
  const std::int64_t lowest = (how == locking::rows ? timeline << bits_of_time : 0) + now / 1000;
  return std::max(r.fence + 1, lowest);
}

simulated_transaction::simulated_transaction(simulated_data& data, simulated_listener* self, bool writes)
    : data_(data), self_(self), who_(self != nullptr ? self->owner : ""), writes_(writes) {
  data_.observe(who_, stage::begins);
  if (data_.how == locking::rows && self_ != nullptr && !self_->connected)
    throw store_error("rondo: the connection to the simulated server broke");
  if (data_.how == locking::database && writes_ &&
      std::ranges::any_of(data_.open, [](const auto* t) { return t->writes_; }))
    throw store_error("rondo: the simulated database is locked");
  wall_now_ = data_.clock();
  now_ = std::chrono::floor<std::chrono::microseconds>(wall_now_.time_since_epoch()).count();
  now_rounded_up_ = rondo::durable::detail::microseconds_of(wall_now_);
  data_.open.push_back(this);
}

simulated_transaction::~simulated_transaction() {
  if (phase_ != phase::open) return;
  close();
  data_.open.pop_back();
}

/// Undoes it.
void simulated_transaction::close() noexcept {
  for (const std::int64_t id : touched_) {
    const auto at = data_.entries.find(id);
    at->second.by = nullptr;
    at->second.pending.reset();
    if (!at->second.committed) data_.entries.erase(at);
  }
}

void simulated_transaction::reach(stage at) {
  data_.observe(who_, at);
  if (phase_ == phase::crashed) throw store_error("rondo: the simulated server crashed");
}

void simulated_transaction::commit(bool durable) {
  reach(stage::commits);
  phase_ = phase::over;
  data_.open.pop_back();
  apply(durable);
  data_.observe(who_, stage::committed);
}

void simulated_transaction::apply(bool durable) {
  simulated_data::undo undo;
  for (const std::int64_t id : touched_) {
    const auto at = data_.entries.find(id);
    auto& [committed, pending, by] = at->second;
    by = nullptr;
    committed.swap(pending);  // `pending` is now what was there before
    if (data_.how == locking::rows && pending && pending->lives() && !pending->lane.empty())
      tell_lane(*pending, committed ? &*committed : nullptr);
    undo.rows.emplace_back(id, std::exchange(pending, std::nullopt));
    if (!committed) data_.entries.erase(at);
  }
  for (const auto& [owner, lives] : owners_) undo.owners.emplace_back(owner, data_.owners.contains(owner));
  if (changed_) {
    ++data_.changes;
    if (self_ != nullptr) ++self_->own_changes;
    if (durable)
      data_.not_durable.clear();
    else
      data_.not_durable.push_back(std::move(undo));
  }
  for (const auto& [queue, paused] : pauses_)
    paused ? static_cast<void>(data_.paused.insert(queue)) : static_cast<void>(data_.paused.erase(queue));
  for (const auto& [owner, lives] : owners_)
    lives ? static_cast<void>(data_.owners[owner] = true) : static_cast<void>(data_.owners.erase(owner));
  if (data_.how == locking::rows)
    for (const std::string& queue : told_) data_.notify(queue, self_);
}

/// If a task that has left its lane, or has ended its run, may have been in the way of the first one: tells those who
/// may have passed that over.
void simulated_transaction::tell_lane(const row& left, const row* now) {
  if (now != nullptr && now->lives() && (now->runs() || !left.runs()) && left.queue == now->queue &&
      left.lane == now->lane && left.place == now->place)
    return;
  const row* first = nullptr;
  for (const auto& [id, e] : data_.entries)
    if (const row* r = look(e);
        r != nullptr && r->lives() && r->queue == left.queue && r->lane == left.lane &&
        (first == nullptr || std::tie(r->place, r->id) < std::tie(first->place, first->id)))
      first = r;
  if (first != nullptr && first->state == row_state::waiting) tell_if_soon(*first);
}

void simulated_transaction::tell_if_soon(const row& r) {
  using rondo::durable::detail::soon;
  if (r.due < now_ + rondo::durable::detail::microseconds_of(soon)) tell(r.queue);
}

simulated_transaction::entry* simulated_transaction::find(std::int64_t id) {
  const auto at = data_.entries.find(id);
  return at == data_.entries.end() ? nullptr : &at->second;
}

void simulated_transaction::lock(entry& e) {
  if (e.by == this) return;
  touched_.push_back(e.committed->id);
  e.pending = e.committed;
  e.by = this;
}

row& simulated_transaction::change(entry& e) {
  lock(e);
  changed_ = true;
  return *e.pending;
}

void simulated_transaction::remove(entry& e) {
  change(e);
  e.pending.reset();
}

row& simulated_transaction::insert() {
  const std::int64_t id = ++data_.last_id;
  touched_.push_back(id);
  changed_ = true;
  entry& e = data_.entries[id];
  e.by = this;
  e.pending.emplace().id = id;
  return *e.pending;
}

bool simulated_transaction::has_earlier(const row& than) const noexcept {
  return std::ranges::any_of(data_.entries, [&](const auto& each) {
    const row* r = look(each.second);
    return r != nullptr && r->lives() && r->queue == than.queue && r->lane == than.lane &&
           std::tie(r->place, r->id) < std::tie(than.place, than.id);
  });
}

bool simulated_transaction::has_another_that_runs(const row& than) const noexcept {
  return std::ranges::any_of(data_.entries, [&](const auto& each) {
    const row* r = look(each.second);
    return r != nullptr && r->runs() && r->queue == than.queue && r->lane == than.lane && r->id != than.id;
  });
}

}  // namespace durable_test
