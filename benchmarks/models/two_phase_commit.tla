------------------------------- MODULE model -------------------------------
\* Two-phase commit, after Gray and Lamport's TwoPhase (2006). What has been said stays said.
EXTENDS Naturals

RM == 1 .. @N@

VARIABLES rm, decision, said, heard

Init ==
  /\ rm = [i \in RM |-> "working"]
  /\ decision = "none"
  /\ said = {}
  /\ heard = {}

Commit == decision = "none" /\ heard = RM /\ decision' = "commit" /\ UNCHANGED <<rm, said, heard>>
Abort == decision = "none" /\ decision' = "abort" /\ UNCHANGED <<rm, said, heard>>
Prepare(i) == rm[i] = "working" /\ rm' = [rm EXCEPT ![i] = "prepared"] /\ said' = said \cup {i} /\ UNCHANGED <<decision, heard>>
GiveUp(i) == rm[i] = "working" /\ rm' = [rm EXCEPT ![i] = "aborted"] /\ UNCHANGED <<decision, said, heard>>
TakeVote(i) ==
  decision = "none" /\ i \in said /\ i \notin heard /\ heard' = heard \cup {i} /\ UNCHANGED <<rm, decision, said>>
LearnCommit(i) ==
  decision = "commit" /\ rm[i] # "committed" /\ rm' = [rm EXCEPT ![i] = "committed"] /\ UNCHANGED <<decision, said, heard>>
LearnAbort(i) ==
  decision = "abort" /\ rm[i] # "aborted" /\ rm' = [rm EXCEPT ![i] = "aborted"] /\ UNCHANGED <<decision, said, heard>>

Next ==
  \/ Commit
  \/ Abort
  \/ \E i \in RM : Prepare(i) \/ GiveUp(i) \/ TakeVote(i) \/ LearnCommit(i) \/ LearnAbort(i)

Property1 == ~ \E i, j \in RM : rm[i] = "committed" /\ rm[j] = "aborted"
=============================================================================
The configuration, model.cfg:
INIT Init
NEXT Next
INVARIANT Property1
