// The game loop of event_loops.md: a timer for the game's own time, another one for the world's.
#include <chrono>
#include <vector>

#include <doctest/doctest.h>
#include <rondo/manual_timer.hpp>
#include <rondo/polled_timer.hpp>

namespace readme_game_loop {

using namespace std::chrono_literals;

/// Stands in for a game: each frame has taken 16 ms.
struct game {
  int frames = 0;
  bool paused = false;
  double speed = 1;
  bool running() const { return frames < 1000; }
  std::chrono::milliseconds last_frame() const { return 16ms; }
  void draw() {
    ++frames;
    paused = frames >= 200 && frames < 700;  // paused for 8 s
    speed = frames >= 700 ? 0.5 : 1;         // then in slow motion
  }
};

TEST_CASE("a game's time stands still while it is paused") {
  game game;
  std::vector<int> spawned;  // in which frame
  const auto spawn_enemy = [&] { spawned.push_back(game.frames); };
  const auto save = [] {};

  rondo::manual_timer game_time;  // stops while the game is paused
  rondo::polled_timer real_time;  // never stops
  game_time.schedule_every(2s, spawn_enemy);
  real_time.schedule_every(1min, save);

  while (game.running()) {
    real_time.poll(100);  // at most 100 in one frame
    if (!game.paused) game_time.advance(game.last_frame() * game.speed);
    game.draw();
  }

  // 2 s are 125 frames, later 250; the game is paused from frame 200 to 699.
  CHECK(spawned == std::vector{124, 799});
  CHECK(game_time.now() == rondo::time_point(200 * 16ms + 300 * 8ms));
}

}  // namespace readme_game_loop
