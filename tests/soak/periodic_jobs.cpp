#include <vector>

#include "periodic.hpp"
#include "producers.hpp"

namespace soak {

namespace {

struct job_on_a_grid {
  rondo::timer_id id;
  std::shared_ptr<periodic> what;
};

job_on_a_grid begin_one(station& s, dice& chance) {
  const pattern p = draw_pattern(chance);
  job_on_a_grid made{{}, std::make_shared<periodic>(s, p, chance())};
  watched<periodic> callable(s.books(), made.what);
  if (!booked(s.books(), [&] { made.id = s.timers().schedule(p.when, std::move(callable)); }))
    made.what.reset();
  return made;
}

void end_one(station& s, const job_on_a_grid& job, dice& chance) {
  const bool waits = chance.percent(50);
  const auto said = waits ? s.timers().cancel_and_wait(job.id) : s.timers().cancel(job.id);
  check_cancel(s.books(), *job.what, said, waits);
}

}  // namespace

void periodic_jobs(station& s, dice chance, const orders& o) {
  std::vector<job_on_a_grid> jobs(5 * o.batch);
  while (!o.over) {
    // Each lives until it is drawn again.
    job_on_a_grid& job = jobs[chance.below(jobs.size())];
    if (job.what != nullptr) end_one(s, job, chance);
    job = begin_one(s, chance);
    o.rest();
  }
  for (const job_on_a_grid& job : jobs)
    if (job.what != nullptr) end_one(s, job, chance);
}

}  // namespace soak
