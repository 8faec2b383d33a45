// The thread that talks to the database.
#pragma once

#include <chrono>

#include "durable/dispatcher/inbox.hpp"
#include "durable/dispatcher/turns.hpp"
#include "durable/engine.hpp"

namespace rondo::durable::detail {

/// Takes one step after the other, and waits for the session while there is nothing to do.
class database_thread {
 public:
  /// All of these outlive this object. Only this thread uses `steps`.
  database_thread(session& database, inbox& arrivals, turns& steps) noexcept
      : session_(database), inbox_(arrivals), turns_(steps) {}

  /// Runs until end(), and at most two seconds longer if the database does not answer then.
  void run() noexcept;

  /// No run is left: reports the rest, and ends. From one other thread, once.
  void end() noexcept;

 private:
  void tell_the_last() noexcept;

  session& session_;
  inbox& inbox_;
  turns& turns_;
  std::chrono::steady_clock::time_point end_at_;  // when stop() had nothing else to wait for
};

}  // namespace rondo::durable::detail
