// The wheel. There is one implementation, with or without locks. This is how it works.
//
// Ticks. A tick is a point in the wheel's time: an absolute 64-bit number, so nothing is decremented or moved as time
// passes. Tick t has the bucket `t mod buckets`; its round is `t / buckets`, rounded down. So far this is the hashed
// wheel of Varghese and Lauck ("Hashed and hierarchical timing wheels", 1987), in which a bucket has timers of all
// rounds.
//
// The window. Here a bucket holds the nodes of one tick only. The buckets cover a window of as many ticks as there are
// buckets. An eighth of the window is a block, and the window begins at a multiple of a block. It moves forward as
// nodes of later blocks are taken. Nodes due after the window are in the far store `future`. Nodes due before it, which
// are overdue, are in the far store `past`.
//
// Chunks. The nodes of a bucket or far list are in a chain of chunks, each an array of 64 slots. A node knows the
// number of its slot. cancel() empties the slot and leaves a hole, without knowing the chain; a chunk that is two
// thirds holes is merged with its neighbours. A chain keeps the order of insertion. Either all nodes of one tick are in
// one chain, or the older ones have been redistributed and the others not yet. So they fire in the order of scheduling.
//
// Far stores. Each is a radix heap with octal digits (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms for the
// shortest path problem", 1990): the further away the ticks of a list are, the coarser it is. As the window moves, the
// lists that it has reached are redistributed, in order, to buckets and to finer lists. This is done in parts of 4,096
// nodes, one or two for each tick that is taken. In between, the window ends before the first tick that is not yet
// redistributed, and new nodes of such ticks queue up behind the old ones. If such a tick is due, only its nodes are
// extracted.
//
// The delay queue. It is a mutable Fibonacci heap (Fredman and Tarjan, "Fibonacci heaps and their uses in improved
// network optimization algorithms", 1987) of buckets, not of nodes. A bucket with chunks has an entry, whose key is the
// tick of its nodes. One more entry represents both far stores of a stripe. A driver sleeps until next_due(), the top's
// key. An insert that makes the top earlier calls a hook, which wakes the driver. Ticks without nodes are never
// visited.
//
// Early keys. A key is never later than the earliest node of its entry, but it may be earlier: cancel() does not touch
// the queue, and the key of far stores may be the first tick of a list. Only the top's key matters. take_due() and
// next_due() check whether a node is due at it. If not, they remove the bucket's entry or correct the far stores' key,
// and try again with the new top. So after the earliest timer was cancelled, a driver may wake up once for nothing.
//
// Costs. schedule() writes the node, its slot and the end of a chain, in O(1) amortised; it changes the queue only for
// the first chunk of a bucket and for an earlier key of the far stores, also in O(1). cancel() is O(1) amortised.
// take_due() is O(1) for each node, plus O(log entries) for each tick to remove its entry. A node is redistributed at
// most once for each octal digit of its distance in blocks, and not at all if it is cancelled before that. next_due()
// is O(1) if the top's key is exact; finding the earliest node of a far list takes a 64th of its length, more after
// cancellations.
//
// Locks. A stripe has all ticks with the same low bits. Its mutex guards its buckets, its far stores, the nodes in
// both, their memory, and its window (each stripe moves its own). `queue_mutex_` guards the delay queue, which all
// stripes share. It may be taken under a stripe's lock, and no lock is taken under it. Only reschedule() locks two
// stripes, in the order of their addresses. top() is read without a stripe's lock, so is_top() checks it again under
// that lock.
#pragma once

#include <rondo/detail/wheel_core_class.hpp>
#include <rondo/detail/wheel_core_far.hpp>
#include <rondo/detail/wheel_core_fault.hpp>
