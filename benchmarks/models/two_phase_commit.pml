/* Two-phase commit, after Gray and Lamport's TwoPhase (2006). What has been said stays said: "said" and "heard" hold one bit for
   each manager. A single process chooses what happens next, so the state holds nothing but the protocol. */

#define N @N@

#define working   0
#define prepared  1
#define committed 2
#define aborted   3

#define undecided 0
#define commit    1
#define abort     2

byte rm[N];
byte decision;
short said;   /* the managers whose vote is under way or taken */
short heard;  /* the managers whose vote the coordinator has taken */

#define BIT(i)  (1 << i)
#define ALL     ((1 << N) - 1)

#define MANAGER(i) \
  :: d_step { rm[i] == working -> rm[i] = prepared; said = said | BIT(i) } \
  :: d_step { rm[i] == working -> rm[i] = aborted } \
  :: d_step { decision == undecided && (said & BIT(i)) && !(heard & BIT(i)) -> heard = heard | BIT(i) } \
  :: d_step { decision == commit && rm[i] != committed -> rm[i] = committed } \
  :: d_step { decision == abort && rm[i] != aborted -> rm[i] = aborted } \
  :: d_step { rm[i] == committed && somebody_aborted -> assert(false) }

#define ABORTED(i) rm[i] == aborted

#if N == 5
#define somebody_aborted (ABORTED(0) || ABORTED(1) || ABORTED(2) || ABORTED(3) || ABORTED(4))
#elif N == 6
#define somebody_aborted (ABORTED(0) || ABORTED(1) || ABORTED(2) || ABORTED(3) || ABORTED(4) || ABORTED(5))
#elif N == 7
#define somebody_aborted (ABORTED(0) || ABORTED(1) || ABORTED(2) || ABORTED(3) || ABORTED(4) || ABORTED(5) || ABORTED(6))
#elif N == 8
#define somebody_aborted (ABORTED(0) || ABORTED(1) || ABORTED(2) || ABORTED(3) || ABORTED(4) || ABORTED(5) || ABORTED(6) || ABORTED(7))
#elif N == 9
#define somebody_aborted (ABORTED(0) || ABORTED(1) || ABORTED(2) || ABORTED(3) || ABORTED(4) || ABORTED(5) || ABORTED(6) || ABORTED(7) || ABORTED(8))
#endif

active proctype system() {
  do
  :: d_step { decision == undecided && heard == ALL -> decision = commit }
  :: d_step { decision == undecided -> decision = abort }
  MANAGER(0)
  MANAGER(1)
  MANAGER(2)
  MANAGER(3)
  MANAGER(4)
#if N > 5
  MANAGER(5)
#endif
#if N > 6
  MANAGER(6)
#endif
#if N > 7
  MANAGER(7)
#endif
#if N > 8
  MANAGER(8)
#endif
  od
}
