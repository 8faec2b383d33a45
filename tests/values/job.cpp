// A job on its own: called, moved, dropped.
#include <rondo/job.hpp>

#include <memory>
#include <utility>

#include <doctest/doctest.h>

namespace values_job {

using namespace rondo;
using rondo::detail::job_ticket;

struct counting_host : rondo::detail::job_host {
  int starts = 0, drops = 0;
  void start(const job_ticket&) noexcept override { ++starts; }
  void drop(const job_ticket&) noexcept override { ++drops; }
};

TEST_CASE("a job that was called is spent: it runs once, is not dropped, and releases its scheduler") {
  const auto host = std::make_shared<counting_host>();
  {
    job j(host, {});
    j();
    CHECK(host.use_count() == 1);
    j();
    CHECK(host->starts == 1);
  }
  CHECK(host->drops == 0);
}

TEST_CASE("a job that is destroyed or replaced without having been called is dropped, once") {
  const auto host = std::make_shared<counting_host>();
  {
    job j(host, {});
    j = job(host, {});
    CHECK(host->drops == 1);
  }
  CHECK(host->drops == 2);
  CHECK(host->starts == 0);
}

TEST_CASE("a moved-from job is spent, and a job that is moved to itself is not dropped") {
  const auto host = std::make_shared<counting_host>();
  job a(host, {});
  job b = std::move(a);
  a();  // NOLINT(bugprone-use-after-move): it does nothing
  CHECK(host->starts == 0);
  job& same = b;
  b = std::move(same);
  CHECK(host->drops == 0);
  b();
  CHECK(host->starts == 1);
}

TEST_CASE("a default-constructed job is spent") {
  job j;
  j();
}

}  // namespace values_job
