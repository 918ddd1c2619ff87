-- Two-phase commit, after Gray and Lamport's TwoPhase (2006). What has been said stays said. Managers are a range and not a
-- scalarset: nobody else in this comparison reduces by symmetry.

const N: @N@;

type
  manager: 1..N;
  stage: enum { working, prepared, committed, aborted };

var
  rm: array [manager] of stage;
  said: array [manager] of boolean;
  heard: array [manager] of boolean;
  decision: enum { undecided, commit, abort };

startstate
begin
  decision := undecided;
  for i: manager do
    rm[i] := working;
    said[i] := false;
    heard[i] := false;
  endfor;
endstartstate;

rule "commit" decision = undecided & forall i: manager do heard[i] endforall ==>
begin decision := commit; endrule;

rule "abort" decision = undecided ==>
begin decision := abort; endrule;

ruleset i: manager do
  rule "prepare" rm[i] = working ==>
  begin rm[i] := prepared; said[i] := true; endrule;

  rule "give up" rm[i] = working ==>
  begin rm[i] := aborted; endrule;

  rule "take the vote" decision = undecided & said[i] & !heard[i] ==>
  begin heard[i] := true; endrule;

  rule "learn of the commit" decision = commit & rm[i] != committed ==>
  begin rm[i] := committed; endrule;

  rule "learn of the abort" decision = abort & rm[i] != aborted ==>
  begin rm[i] := aborted; endrule;
endruleset;

invariant "nobody commits where another aborts"
  !(exists i: manager do rm[i] = committed endexists & exists j: manager do rm[j] = aborted endexists);
